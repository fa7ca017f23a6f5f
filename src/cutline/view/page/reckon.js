"use strict";
// What a cut would leave, cost and lose, reckoned at once from what the page has. Numbers in, numbers out.

// For each message the nearest place at or before it where no call waits for its result: there a cut can be (`seam.snap`).
function legal(message, address, last) {
  const opened = Int32Array.from({ length: last + 1 }, (_, at) => at), made = new Map();
  address.forEach((one, index) => {
    if (!one) return;
    if (!made.has(one)) { made.set(one, message[index]); return; }
    const call = made.get(one);
    for (let at = call + 1; at <= message[index]; at++) opened[at] = Math.min(opened[at], call);
    made.delete(one);
  });
  for (let at = 0; at <= last; at++) if (opened[at] < at) opened[at] = opened[opened[at]];
  return opened;
}

// The arithmetic of a cut (`money.payback`), on the blocks' own tokens and what the last exact answer was reckoned with.
function about(view, at) {
  const { known, count, tokens, gone, offset, data } = view, harness = data.tokens.harness, all = offset[count] || 1;
  const before = known ? known.tokens[0] : harness + all, share = (before - harness) / all, part = (name) => data.parts.indexOf(name);
  let weight = 0, calls = 0, holes = 0, thinking = 0, first = -1;
  for (let index = 0; index < count; index++) {
    if (!gone[index]) continue;
    if (first < 0) first = index;
    weight += tokens[index];
    if (view.part[index] === part("call")) { calls++; if (view.hole.has(index)) holes++; }
    else if (view.part[index] === part("thinking")) thinking++;
  }
  if (first < 0) return { at, about: true, reason: "no call, result or thinking block stands before this place" };
  const told = { at, about: true, seam: at, lost: { calls, holes, thinking, again: 0 }, healed: [], words: known ? known.words : null };
  const notice = known && known.lost.calls ? (known.notice.length * data.tokens.per_byte * calls) / known.lost.calls : 0;
  const D = weight * share - notice, S = before - D - harness - offset[first] * share;
  told.tokens = [before, before - D, "", ""];
  if (known) {
    const { w, r, cold, likely, each_token: usd, model } = known.money, anew = cold ? 0 : Math.max(w - r, 0) * S, each = r * D;
    const turns = D <= 0 ? null : anew ? anew / each : 0, n = Math.max(likely, 1), at_once = cold ? (w - r) * D : 0;
    const priced = (sum) => (usd === null ? null : sum * usd);
    told.money = { S, D, w, r, cold, turns, likely, model, once: priced(anew), each: priced(each),
      net: priced(n * each + at_once - anew), pays: turns !== null && turns <= n };
  }
  return told;
}

function mark(flags, runs) {
  for (const [from, to] of runs) flags.fill(1, from, to);
}
