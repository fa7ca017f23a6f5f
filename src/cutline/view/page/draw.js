"use strict";
// The two pictures: the timeline before and after the seam, and the saw-tooth of the requests. Numbers in, pixels out.

const PART_NAMES = {
  agent: "the agent's words", human: "the human's words", call: "tool calls", result: "tool results", thinking: "thinking",
  harness: "harness", attachment: "attachments", checkpoint: "checkpoints",
};

function colours() {
  const style = getComputedStyle(document.documentElement);
  const found = {};
  for (const name of [...Object.keys(PART_NAMES), "ink", "faint", "line", "gone", "focus", "good", "bad", "raised"])
    found[name] = style.getPropertyValue("--" + name).trim();
  return found;
}

function canvasOf(canvas) {
  const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return [context, width, height];
}

const round = (number) => Math.round(number).toLocaleString("en");
const short = (number) =>
  number >= 1e6 ? (number / 1e6).toFixed(2) + " M" : number >= 1e4 ? Math.round(number / 1e3) + " k" : round(number);
const money = (usd) =>
  usd === null || usd === undefined ? "–" : (usd < 0 ? "−$" : "$") + Math.abs(usd).toFixed(Math.abs(usd) >= 0.095 || !usd ? 2 : 4);

function size(bytes) {
  return bytes < 1e6 ? Math.round(bytes / 1e3) + " KB" : (bytes / 1e6).toFixed(2) + " MB";
}

function when(text) {
  const time = new Date(text);
  return isNaN(time) ? "" : time.toISOString().slice(0, 16).replace("T", " ") + " UTC";
}

// Where each block stands on the line, in tokens from the left.
function offsets(tokens) {
  const found = new Float64Array(tokens.length + 1);
  for (let at = 0; at < tokens.length; at++) found[at + 1] = found[at] + tokens[at];
  return found;
}

function drawLine(canvas, view) {
  const [context, width, height] = canvasOf(canvas);
  const paint = colours(), { parts, offset, gone, part } = view;
  const total = offset[part.length] || 1, scale = width / total;
  const top = 26, band = (height - top - 36) / 2, lower = top + band + 20;
  const strip = (y, tall, wanted, packed) => {
    let at = 0, run = -1, from = 0, faded = false, end = 0;
    const flush = () => {
      if (run < 0) return;
      context.globalAlpha = faded ? 0.28 : 1;
      context.fillStyle = paint[parts[run]];
      // Less than a pixel is mixed with its neighbours by its share; only what a human said is always seen.
      context.fillRect(from * scale, y, Math.max((end - from) * scale, parts[run] === "human" ? 0.8 : 0), tall);
    };
    for (let index = 0; index < part.length; index++) {
      const size = offset[index + 1] - offset[index], fade = !packed && gone[index] === 1;
      if (!wanted(index)) continue;
      const start = packed ? at : offset[index];
      if (part[index] !== run || fade !== faded || start > end + 1e-9) {
        flush();
        run = part[index]; from = start; faded = fade;
      }
      end = start + size;
      at += size;
    }
    flush();
    context.globalAlpha = 1;
    return at;
  };
  strip(top, band, () => true, false);
  const left = strip(lower, band, (index) => gone[index] !== 1, true);
  context.strokeStyle = paint.line;
  context.strokeRect(0.5, lower - 0.5, width - 1, band + 1);
  context.fillStyle = paint.faint;
  context.font = '12px system-ui, "DejaVu Sans", sans-serif';
  context.textBaseline = "alphabetic";
  const harness = view.data.tokens.harness;
  const more = harness ? (width < 420 ? ", " + short(harness) + " of prompt, tools" : "; in front of both, " + short(harness) + " of the client's prompt and tools") : "";
  context.fillText("before: " + short(total) + " tokens" + more, 2, top + band + 15);
  context.fillText("after: " + short(left) + " tokens", 2, height - 2);
  context.fillStyle = paint.bad;
  let marked = -1; // what falls on a pixel that is drawn is not drawn again
  for (const index of view.hole) {
    const end = offset[index + 1] * scale;
    if (end < marked) continue;
    const start = offset[index] * scale;
    context.fillRect(start, top + band + 1, Math.max(end - start, 1), 3);
    marked = Math.floor(start) + 1;
  }
  context.fillStyle = paint.checkpoint;
  for (const index of view.seams) context.fillRect(offset[index] * scale - 1, top - 6, 2, band + 10);
  if (view.marked >= 0) {
    context.strokeStyle = paint.focus;
    context.lineWidth = 2;
    const x = offset[view.marked] * scale;
    context.strokeRect(x - 1, top - 2, Math.max(3, (offset[view.marked + 1] - offset[view.marked]) * scale) + 2, band + 4);
    context.lineWidth = 1;
  }
}

const PAID = [["read", "thinking", "read from the cache"], ["write", "attachment", "written to the cache"], ["input", "checkpoint", "uncached"]];

function drawSaw(canvas, requests, chosen) {
  const [context, width, height] = canvasOf(canvas);
  const paint = colours(), foot = 18, head = 20, tall = height - foot - head;
  const sizes = requests.map((one) => one.read + one.write + one.input);
  const most = Math.max(1, ...sizes), step = width / Math.max(1, requests.length);
  let sum = 0;
  const spent = requests.map((one) => (sum += one.usd || 0));
  context.font = '12px system-ui, "DejaVu Sans", sans-serif';
  requests.forEach((one, at) => {
    let y = height - foot;
    for (const [key, colour] of PAID) {
      const size = (one[key] / most) * tall;
      context.fillStyle = paint[colour];
      context.fillRect(at * step, y - size, Math.max(step - (step > 3 ? 1 : 0), 0.7), size);
      y -= size;
    }
  });
  if (sum > 0) {
    context.strokeStyle = paint.ink;
    context.lineWidth = 1.5;
    context.beginPath();
    spent.forEach((usd, at) => context[at ? "lineTo" : "moveTo"]((at + 0.5) * step, height - foot - (usd / sum) * tall));
    context.stroke();
    context.lineWidth = 1;
  }
  if (chosen >= 0) {
    context.strokeStyle = paint.focus;
    context.strokeRect(chosen * step - 0.5, head, Math.max(step, 2) + 1, tall);
  }
  context.fillStyle = paint.faint;
  context.fillText("up to " + short(most) + " tokens", 2, 13);
  const total = sum > 0 ? money(sum) + " in all (line)" : "";
  context.fillText(total, width - context.measureText(total).width - 2, 13);
  let x = 2;
  for (const [key, colour, text] of PAID) {
    context.fillStyle = paint[colour];
    context.fillRect(x, height - 10, 9, 9);
    context.fillStyle = paint.faint;
    const told = width < 420 ? { read: "cache read", write: "cache write", input: "uncached" }[key] : text;
    context.fillText(told, x + 13, height - 2);
    x += context.measureText(told).width + 28;
  }
}
