"use strict";
// The page: where its data come from (the server, or the file itself), what is shown, and the seam that is dragged.

const $ = (id) => document.getElementById(id);
const make = (tag, text, kind) => {
  const made = document.createElement(tag);
  if (text !== undefined && text !== null) made.textContent = text;
  if (kind) made.className = kind;
  return made;
};

// ------------------------------------------------------------------------------------------------- where data come from

class Server {
  async get(what, asked = {}) {
    let answer, found;
    try {
      answer = await fetch("api/" + what + "?" + new URLSearchParams(asked));
      found = await answer.json();
    } catch {
      throw new Error(answer ? "This could not be worked out; where cutline view runs it says why." :
        "Nobody answers: start cutline view again, and open the address that it prints.");
    }
    if (!answer.ok) throw new Error(found.error || "no answer");
    return found;
  }
  list() { return this.get("sessions"); }
  session(key) { return this.get("session", { key }); }
  notes(key) { return this.get("notes", { key }); }
  stamp(key) { return this.get("stamp", { key }); }
  async text(key, index) { return (await this.get("block", { key, index })).text; }
  cut(key, at) { return this.get("cut", at === null ? { key } : { key, at }); }
  async find(key, q) { return (await this.get("find", { key, q })).found; }
  search(q) { return this.get("search", { q }); }
}

class Inside {
  constructor(held) { this.held = held; this.places = Object.keys(held.cuts).filter(Boolean).map(Number); }
  async session() { return this.held.session; }
  async notes() { return this.held.notes; }
  async text(key, index) { return this.held.texts[index]; }
  async cut(key, at) { return this.held.cuts[at === null ? "" : this.nearest(at)]; }
  nearest(at) { return this.places.reduce((one, other) => (Math.abs(other - at) < Math.abs(one - at) ? other : one)); }
  async find(key, q) {
    const words = q.toLowerCase().split(/\s+/).filter(Boolean);
    const found = [];
    this.held.texts.forEach((text, index) => {
      const lowered = text.toLowerCase();
      if (words.every((word) => lowered.includes(word))) found.push(index);
    });
    return found;
  }
}

const inside = $("data") ? new Inside(JSON.parse($("data").textContent)) : null;
const source = inside || new Server();

// --------------------------------------------------------------------------------------------------------- what is shown

let view = null, rows = null, asked = 0, waiting = 0, watching = 0, open = -1, answering = null;

function show(which) {
  for (const id of ["list", "results", "session"]) $(id).hidden = id !== which;
  $("status").hidden = true;
}

function say(text) {
  for (const id of ["list", "results", "session"]) $(id).hidden = true;
  $("status").textContent = text;
  $("status").hidden = false;
}

async function route() {
  clearTimeout(watching);
  if ($("one").open) $("one").close();
  const [, what, rest] = location.hash.split("/");
  try {
    if (inside) await openSession("");
    else if (what === "s") await openSession(decodeURIComponent(rest));
    else if (what === "search") await openSearch(decodeURIComponent(rest));
    else await openList();
  } catch (error) {
    say(error.message);
  }
}

let listed = [];
async function openList() {
  say("Looking for sessions …");
  const found = await source.list();
  listed = found.sessions;
  document.title = "Sessions · Cutline";
  show("list");
  fillList();
}

function fillList() {
  const words = $("narrow").value.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = listed.filter((one) =>
    words.every((word) => (one.title + " " + one.client + " " + one.folder + " " + one.id).toLowerCase().includes(word)));
  $("sessions").replaceChildren(...fits.map((one) => {
    const item = make("li"), link = make("a");
    link.href = "#/s/" + one.key;
    link.append(make("strong", one.title),
      make("span", [one.client, size(one.bytes), when(one.modified), one.folder].filter(Boolean).join("  ·  "), "faint"));
    item.append(link);
    return item;
  }));
  if (!fits.length) $("sessions").append(make("li", listed.length ? "No session has these words." : "No session of any client was found."));
}

async function openSearch(words) {
  say("Searching …");
  const { found, looked } = await source.search(words);
  document.title = words + " · Cutline";
  $("query").value = words;
  $("hits").replaceChildren(...found.map((hit) => {
    const item = make("li"), link = make(hit.key ? "a" : "div");
    if (hit.key) link.href = "#/s/" + hit.key + "/" + (hit.address || "");
    const who = hit.part === "result" ? hit.label : hit.part + " said";
    link.append(make("strong", who), make("span", hit.text),
      make("span", ["", hit.address, hit.when, hit.project].filter(Boolean).join("  ·  "), "faint"));
    link.lastChild.prepend(document.createElement("br"));
    item.append(link);
    return item;
  }));
  $("looked").textContent = "Looked through: " + looked + ".";
  if (!found.length) $("hits").append(make("li", "Nothing holds all of these words."));
  show("results");
}

// ------------------------------------------------------------------------------------------------------------ a session

async function openSession(key) {
  say("Reading the session …");
  const address = location.hash.split("/")[3] || "";
  take(key, await source.session(key));
  show("session");
  if (!rows) {
    rows = new Rows($("blocks"), openBlock);
    rows.moved = (index) => { view.marked = index; redraw(); };
  }
  rows.at = 0;
  $("blocks").scrollTop = 0;
  refresh();
  await ask(null);
  await note();
  reach();
  const wanted = view.address.indexOf(address);
  if (address && wanted >= 0) openBlock(wanted);
  if (!inside) watching = setTimeout(() => watch(key), LOOKS_MS);
}

function take(key, data) {
  const blocks = data.blocks, count = blocks.message.length;
  const last = count ? blocks.message[count - 1] + 1 : 0;
  const firsts = new Int32Array(last + 1).fill(count);
  for (let index = count - 1; index >= 0; index--) firsts[blocks.message[index]] = index;
  for (let at = last - 1; at >= 0; at--) if (firsts[at] === count && at < last) firsts[at] = firsts[at + 1];
  view = {
    key, data, count, last, firsts, parts: data.parts, part: blocks.part, tokens: blocks.tokens, preview: blocks.preview,
    address: blocks.address, message: blocks.message, hole: new Set(), requests: [], error: new Set(blocks.error),
    offset: offsets(blocks.tokens), gone: new Uint8Array(count), removable: new Uint8Array(count), added: new Set(), marked: -1,
    at: last, chosen: null, found: null, known: null, firstBehind: -1, stamp: data.stamp,
    seams: data.seams.map((one) => firsts[one.message]),
    name: (index) => {
      const tool = data.tools[blocks.tool[index]], part = data.parts[blocks.part[index]];
      return "#" + blocks.message[index] + " " + (tool ? tool + (part === "result" ? " → result" : "") : part);
    },
  };
  view.snap = legal(blocks.message, blocks.address, last);
  const leaves = new Set(["call", "result", "thinking"].map((name) => data.parts.indexOf(name)));
  blocks.part.forEach((part, index) => { if (leaves.has(part)) view.removable[index] = 1; });
  document.title = data.title + " · Cutline";
  $("title").textContent = data.title;
  facts();
  $("warnings").replaceChildren(
    ...[...data.damage, data.sealed, data.compacted ? "Its client compacted it: what stood before the summary is not in its context." : ""]
      .filter(Boolean).map((text) => make("p", text, "bad")));
  $("legend").replaceChildren(...data.parts.filter((_, at) => blocks.part.includes(at)).map((part) => {
    const item = make("li", PART_NAMES[part]);
    item.prepend(make("i", "", "p-" + part));
    return item;
  }));
  fillPlaces();
  $("seam").setAttribute("aria-valuemax", last);
}

function facts(told) {
  const { data, last, count } = view;
  $("facts").textContent = [
    data.client + " " + data.version, data.id, data.model, data.branch, data.cwd, round(last) + " messages", round(count) + " blocks",
    told && told.calls ? round(told.calls - told.holes.length) + " of " + round(told.calls) + " calls narrated" : "",
    told && told.hidden ? told.hidden + " narration blocks came without words" : "", when(data.last),
  ].filter((one) => one && one.trim()).join("  ·  ");
}

// What takes the server longer to say comes when the blocks are there already.
async function note() {
  const of = view, told = await source.notes(of.key);
  if (of !== view) return;
  view.hole = new Set(told.holes);
  view.requests = told.requests;
  facts(told);
  if (told.holes.length) {
    const item = make("li", "calls that no words carry");
    item.prepend(make("i", "", "p-hole"));
    $("legend").append(item);
  }
  fillDocuments(told.documents);
  fillRequests();
  if ($("show").value === "holes") refresh();
  else rows.draw();
  redraw();
}

function fillPlaces() {
  const { human } = view.data, places = [];
  places.push(["as cutline cut", null]);
  for (const seam of view.data.seams.filter((one) => one.what === "checkpoint").slice(-3)) places.push(["checkpoint #" + seam.message, seam.message]);
  if (human.length) places.push(["before the last human turn", human[human.length - 1]]);
  places.push(["at the end", view.last]);
  $("places").replaceChildren(...places.map(([text, at]) => {
    const button = make("button", text);
    button.type = "button";
    button.dataset.at = at === null ? "" : at;
    button.addEventListener("click", () => wanted(at));
    return button;
  }));
}

// The seam: what would leave, cost and lose is told at once from what is here; the exact answer comes from the server.
function guess(at) {
  const first = at >= view.last ? view.count : view.firsts[at];
  for (let index = 0; index < view.count; index++) view.gone[index] = index < first && view.removable[index] ? 1 : 0;
  place(at);
}

function place(at) {
  view.at = at;
  const first = at >= view.last ? view.count : view.firsts[at];
  view.firstBehind = first < view.count ? first : -1;
  const share = view.count ? view.offset[first] / (view.offset[view.count] || 1) : 0;
  $("seam").style.left = 100 * share + "%";
  $("seam").setAttribute("aria-valuenow", at);
  $("seam").setAttribute("aria-valuetext", at >= view.last ? "at the end" : "before message " + at + " of " + view.last);
  redraw();
}

function move(at) {
  at = view.snap[Math.max(0, Math.min(view.last, at))];
  view.chosen = at;
  guess(at);
  rows.draw();
  fillFigures(about(view, at));
  clearTimeout(waiting);
  waiting = setTimeout(() => wanted(at), 120);
}

function wanted(at) {
  ask(at).catch((error) => { $("where").textContent = error.message; });
}

// One question at a time: what was asked for meanwhile, the last of it, is asked when the answer before is there.
async function ask(at) {
  const mine = ++asked, of = view;
  clearTimeout(waiting);
  of.chosen = at;
  try { await answering; } catch { /* whoever asked has been told */ }
  if (mine !== asked || of !== view) return;
  const found = await (answering = source.cut(of.key, at));
  if (mine !== asked || of !== view) return;
  view.found = found;
  if (found.money) view.known = found;
  view.gone.fill(0);
  mark(view.gone, found.gone || []);
  view.added = new Set(found.added || []);
  const seam = found.reason ? (found.at === null || found.at === undefined ? view.last : Number(found.at)) : found.seam;
  place(seam);
  fillFigures(found);
  if ($("show").value === "all") rows.draw();
  else refresh();
}

// What a cut at the end would take is what any cut takes before its place, nearly: known before the server answers.
async function reach() {
  const of = view, end = await source.cut(of.key, of.last);
  if (end.gone) { of.removable.fill(0); mark(of.removable, end.gone); }
  if (end.money && !of.known) of.known = end;
}

function figure(head, strong, rest, tone) {
  const box = make("div"), value = make("strong", strong, tone || "");
  box.append(make("span", head, "faint"), value, make("span", rest, "faint"));
  return box;
}

function fillFigures(found) {
  for (const button of $("places").children) {
    const at = button.dataset.at === "" ? null : Number(button.dataset.at);
    button.setAttribute("aria-pressed", String(at === view.chosen));
  }
  $("figures").setAttribute("aria-busy", String(Boolean(found.about)));
  $("exact").hidden = $("notice").hidden = Boolean(found.reason);
  for (const name of ["exact", "notice"]) $(name).classList.toggle("old", Boolean(found.about));
  if (found.reason) {
    $("where").textContent = "Nothing to cut here: " + found.reason + ".";
    $("figures").replaceChildren();
    return;
  }
  const { tokens, words, money: paid, lost, rows: table } = found, mark = (source_) => (source_ === "measured" ? "" : "~");
  const unknown = "…";
  $("where").textContent = (found.seam >= view.last ? "At the end" : "Before message " + found.seam + " of " + view.last) +
    (found.chosen === "checkpoint" ? ", its last checkpoint." : found.about ? ", about; the exact figures follow …" : ".");
  const share = tokens[0] ? tokens[1] / tokens[0] : 0;
  const turns = !paid || paid.turns === null ? "never" : paid.turns === 0 ? "at once" :
    "after " + round(Math.max(1, Math.ceil(paid.turns))) + (paid.turns <= 1 ? " request" : " requests");
  const leaves = figure("what stays", mark(tokens[3]) + short(tokens[1]) + " of " + mark(tokens[2]) + short(tokens[0]) + " tokens",
    (words && words[1] ? words[1] + " bytes of words are missing" : "every word" + (words ? ": " + round(words[0]) + " bytes, byte for byte" : "")) +
      (view.data.tokens.harness ? "; " + short(view.data.tokens.harness) + " of both are the client's own prompt and tools" : ""));
  const meter = make("div", "", "meter"), bar = make("i");
  bar.style.width = Math.min(100, 100 * share) + "%";
  meter.append(bar);
  leaves.children[1].after(meter);
  $("figures").replaceChildren(
    leaves,
    !paid ? figure("what it costs", unknown, "") : figure("what it costs",
      paid.once ? money(paid.once) + " once" : paid.cold ? "nothing: the cache is cold" : paid.once === null ? "no price known" : "nothing",
      round(paid.S) + (paid.cold ? " tokens would be written in any case" : " tokens are written anew at " + paid.w.toFixed(2) +
        " of the input price, not read at " + paid.r.toFixed(2)) + (paid.model ? "; " + paid.model : "")),
    !paid ? figure("what it saves", unknown, "") : figure("what it saves", (paid.each === null ? round(paid.D * paid.r) + " tokens' price" : money(paid.each)) + " a request",
      "pays " + turns + "; likely " + round(paid.likely) + " more: " + (paid.pays ? "worth it" : "not worth it") +
      (paid.net === null ? "" : " (" + money(paid.net) + ")"), paid.pays ? "good" : "bad"),
    figure("what is lost", round(lost.calls) + " calls, " + round(lost.holes) + " without words",
      round(lost.thinking) + (lost.thinking === 1 ? " thinking block" : " thinking blocks") + (lost.again ? "; " + lost.again + " were asked for again later (" + short(lost.again_tokens) + " tokens)" : "") +
      (found.healed.length ? "; heals " + found.healed.join(", ") : "")));
  if (found.about) return;
  $("rows-table").replaceChildren(tableOf(["", "blocks", "bytes", "after", "bytes"],
    Object.entries(table).map(([name, row]) => [name, ...row.map(round)])));
  $("notice-text").textContent = found.notice || "None.";
}

function tableOf(heads, lines) {
  const made = make("table"), head = make("thead"), body = make("tbody"), top = make("tr");
  for (const text of heads) {
    const cell = make("th", text);
    cell.scope = "col";
    top.append(cell);
  }
  head.append(top);
  for (const line of lines) {
    const row = make("tr");
    line.forEach((text) => row.append(make("td", text)));
    body.append(row);
  }
  made.append(head, body);
  return made;
}

function redraw() {
  if (redraw.asked) return;
  redraw.asked = true;
  requestAnimationFrame(() => {
    redraw.asked = false;
    if (!view || $("session").hidden) return;
    drawLine($("line"), view);
    if (view.requests.length) drawSaw($("saw"), view.requests, view.request === undefined ? -1 : view.request);
  });
}

// ------------------------------------------------------------------------------------------------- blocks, before and after

let finding = 0;
async function refresh() {
  const kind = $("show").value, words = $("find").value.trim(), mine = ++finding, of = view;
  const hits = words ? new Set(await source.find(of.key, words)) : null;
  if (mine !== finding || of !== view) return;
  const said = new Set(["agent", "human"].map((name) => view.parts.indexOf(name)));
  const fits = {
    all: () => true, stays: (index) => view.gone[index] !== 1, gone: (index) => view.gone[index] === 1,
    words: (index) => said.has(view.part[index]), holes: (index) => view.hole.has(index),
  }[kind];
  const shown = [];
  for (let index = 0; index < view.count; index++) if (fits(index) && (!hits || hits.has(index))) shown.push(index);
  $("count").textContent = round(shown.length) + (shown.length === 1 ? " block" : " blocks");
  rows.set(view, shown);
}

async function openBlock(index) {
  open = index;
  view.marked = index;
  redraw();
  const part = view.parts[view.part[index]], gone = view.gone[index] === 1;
  $("one-title").textContent = view.name(index);
  $("one-facts").textContent = [PART_NAMES[part], short(view.tokens[index]) + " tokens", view.address[index],
    view.hole.has(index) ? "no words of the agent's carry it" : "", gone ? "left out by this cut" : "stays"].filter(Boolean).join("  ·  ");
  const links = [];
  if (view.address[index]) {
    const other = view.address.findIndex((address, at) => address === view.address[index] && at !== index && view.part[at] !== view.part[index]);
    if (other >= 0) links.push(jump(other, part === "result" || index > other ? "its call" : "its result"));
  }
  $("one-links").replaceChildren(...links);
  $("one-text").textContent = "…";
  if (!$("one").open) $("one").showModal();
  const of = view;
  try {
    const text = await source.text(of.key, index);
    if (open === index && of === view) $("one-text").textContent = text || "(empty)";
  } catch (error) {
    $("one-text").textContent = error.message;
  }
  $("one-text").scrollTop = 0;
}

function jump(index, text) {
  const button = make("button", text);
  button.type = "button";
  button.addEventListener("click", () => { rows.reveal(index); openBlock(index); });
  return button;
}

function step(by) {
  const at = rows.shown.indexOf(open), next = rows.shown[at + by];
  if (at >= 0 && next !== undefined) { rows.choose(at + by); openBlock(next); }
}

// --------------------------------------------------------------------------------------------------- documents, requests

const HEADS = { done: "Done", open: "Open", went_wrong: "Went wrong", next: "Next", working_directory: "Working directory",
  dead_ends: "Dead ends", recipes: "Recipes" };

function fillDocuments(found) {
  $("documents-section").hidden = !found.length;
  $("documents").replaceChildren(...found.map((document_, number) => {
    const made = make("details"), facts = document_.facts;
    const measured = facts.filter((fact) => fact.basis === "measured"), doubted = measured.filter((fact) => fact.doubt);
    made.append(make("summary", (document_.stored ? "Checkpoint at message " : "Refused checkpoint at message ") + document_.message + ": " + measured.length + " measured claims" +
      (doubted.length ? ", " + doubted.length + " of them in doubt" : "") + ", " + (facts.length - measured.length) + " others"));
    made.open = number === found.length - 1;
    if (document_.refused) made.append(make("p", document_.refused, "bad"));
    if (!document_.stored && document_.reply) made.append(make("pre", document_.reply, "reply"));
    for (const fact of facts) {
      const box = make("div", "", "fact"), claim = make("div");
      claim.append(make("span", fact.basis, "tag"), document.createTextNode(fact.claim));
      box.append(claim);
      if (fact.evidence) {
        const line = make("div", "", "faint");
        line.append("evidence: ", make("code", fact.evidence), " ");
        for (const index of fact.calls) line.append(jump(index, "open #" + view.message[index]));
        box.append(line);
      }
      if (fact.basis === "measured")
        box.append(make("div", fact.doubt ? "in doubt: " + fact.doubt : "the record shows it", "faint " + (fact.doubt ? "bad" : "good")));
      made.append(box);
    }
    const list = make("dl");
    for (const [key, text] of Object.entries(document_.texts)) list.append(make("dt", HEADS[key] || key), make("dd", text));
    made.append(list, jump(document_.index, "the call, whole"));
    return made;
  }));
}

function fillRequests() {
  const { requests } = view;
  $("requests-section").hidden = !requests.length;
  if (!requests.length) return;
  const sum = (key) => requests.reduce((total, one) => total + (one[key] || 0), 0);
  const unpriced = requests.filter((one) => one.usd === null).length;
  $("spent").textContent = round(requests.length) + " requests, " + money(sum("usd")) + " by list prices" +
    (unpriced ? " (" + unpriced + " without a known price)" : "") + "; tokens read from the cache " + round(sum("read")) + ", written " +
    round(sum("write")) + ", uncached " + round(sum("input")) + ", of output " + round(sum("output")) + ".";
  $("saw").setAttribute("aria-label", "Input tokens of each request, up to " +
    round(Math.max(...requests.map((one) => one.read + one.write + one.input))) + ". " + $("spent").textContent);
  $("numbers").open = false;
  $("numbers-table").replaceChildren();
}

$("numbers").addEventListener("toggle", () => {
  if (!$("numbers").open || $("numbers-table").firstChild) return;
  $("numbers-table").append(tableOf(["request", "message", "cache read", "written", "uncached", "output", "cost"],
    view.requests.map((one, at) => [at + 1, one.message, round(one.read), round(one.write), round(one.input), round(one.output), money(one.usd)])));
});

$("saw").addEventListener("pointermove", (event) => {
  const { requests } = view, box = $("saw").getBoundingClientRect();
  const at = Math.max(0, Math.min(requests.length - 1, Math.floor(((event.clientX - box.left) / box.width) * requests.length)));
  const one = requests[at];
  view.request = at;
  $("point").textContent = "Request " + (at + 1) + ", message " + one.message + ": " + round(one.read) + " read, " + round(one.write) +
    " written, " + round(one.input) + " uncached, " + round(one.output) + " of output; " + money(one.usd) + ". " + when(one.at);
  redraw();
});

// A session that goes on: its file is looked at each second; what is being dragged or read is left alone meanwhile.
const LOOKS_MS = 1000;
async function watch(key) {
  await look(key);
  if (view && view.key === key && !$("session").hidden) {
    clearTimeout(watching);
    watching = setTimeout(() => watch(key), LOOKS_MS);
  }
}

async function look(key) {
  if (document.hidden || $("one").open || $("seam").classList.contains("held")) return;
  try {
    const { stamp } = await source.stamp(key);
    if (!view || view.key !== key || stamp === view.stamp) return;
    const grown = await source.session(key);
    if (!view || view.key !== key || $("session").hidden) return;
    const atEnd = view.chosen === null || view.chosen >= view.last, chosen = view.chosen, { known, hole, requests } = view;
    take(key, grown);
    Object.assign(view, { known, hole, requests });
    refresh();
    await ask(chosen === null ? null : atEnd ? view.last : chosen);
    await note();
    reach();
  } catch { /* the next look may find it again */ }
}

// -------------------------------------------------------------------------------------------------------- the seam by hand

function messageAt(clientX) {
  const box = $("strip").getBoundingClientRect(), total = view.offset[view.count];
  const wanted = Math.max(0, Math.min(1, (clientX - box.left) / box.width)) * total;
  let low = 0, high = view.count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (view.offset[middle + 1] <= wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}

$("seam").addEventListener("pointerdown", (event) => {
  event.preventDefault();
  $("seam").focus();
  $("seam").setPointerCapture(event.pointerId);
  $("seam").classList.add("held");
});
$("seam").addEventListener("lostpointercapture", () => $("seam").classList.remove("held"));
$("seam").addEventListener("pointermove", (event) => {
  if (!$("seam").hasPointerCapture(event.pointerId)) return;
  const index = messageAt(event.clientX);
  move(index >= view.count ? view.last : view.message[index]);
});
$("seam").addEventListener("keydown", (event) => {
  const human = [0, ...view.data.human, view.last];
  const jumps = { PageDown: human.find((at) => at > view.at), PageUp: human.filter((at) => at < view.at).pop(), Home: 0, End: view.last };
  const by = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
  let to = view.at + by;
  while (by > 0 && to < view.last && view.snap[to] <= view.at) to++;
  if (by) move(to);
  else if (event.key in jumps) { if (jumps[event.key] !== undefined) move(jumps[event.key]); }
  else return;
  event.preventDefault();
});
$("line").addEventListener("click", (event) => {
  const index = Math.min(messageAt(event.clientX), view.count - 1);
  if ($("show").value !== "all" || $("find").value) { $("show").value = "all"; $("find").value = ""; refresh().then(() => rows.reveal(index)); }
  else rows.reveal(index);
});

// ------------------------------------------------------------------------------------------------------------ the rest

$("one-before").addEventListener("click", () => step(-1));
$("one-after").addEventListener("click", () => step(1));
$("one-close").addEventListener("click", () => $("one").close());
$("one").addEventListener("close", () => { open = -1; $("blocks").focus({ preventScroll: true }); });
$("one").addEventListener("click", (event) => { if (event.target === $("one")) $("one").close(); });
$("show").addEventListener("change", refresh);
let typed = 0;
$("find").addEventListener("input", () => { clearTimeout(typed); typed = setTimeout(refresh, 200); });
$("narrow").addEventListener("input", fillList);
$("search").addEventListener("submit", (event) => {
  event.preventDefault();
  const words = $("query").value.trim();
  if (words) location.hash = "#/search/" + encodeURIComponent(words);
});
if (inside) { $("search").hidden = $("all").hidden = true; $("home").removeAttribute("href"); }
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || inside || event.ctrlKey || event.metaKey || /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) return;
  event.preventDefault();
  $("query").focus();
});
new ResizeObserver(() => { redraw(); if (rows && view) rows.draw(); }).observe(document.body);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
addEventListener("hashchange", route);

(async () => {
  if (!inside && !location.hash) {
    try {
      const { first } = await source.list();
      if (first) { location.replace("#/s/" + first); return; }
    } catch (error) { say(error.message); return; }
  }
  route();
})();
