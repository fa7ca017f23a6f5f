"use strict";
// The list of blocks: only the rows in sight are there, and they are used again. Everything is put in as text.

const ROW = 46;

class Rows {
  constructor(element, opened) {
    this.element = element;
    this.opened = opened;
    this.view = null;
    this.shown = [];
    this.at = 0;
    this.pool = [];
    this.space = document.createElement("div");
    this.space.className = "space";
    element.append(this.space);
    let asked = false;
    element.addEventListener("scroll", () => {
      if (asked) return;
      asked = true;
      requestAnimationFrame(() => { asked = false; this.draw(); });
    }, { passive: true });
    element.addEventListener("keydown", (event) => this.key(event));
    element.addEventListener("click", (event) => {
      const row = event.target.closest(".row");
      if (!row) return;
      this.choose(Number(row.dataset.at));
      this.opened(this.shown[this.at]);
    });
  }

  set(view, shown) {
    const held = this.shown[this.at];
    this.view = view;
    this.shown = shown;
    const again = shown.indexOf(held);
    this.at = again >= 0 ? again : 0;
    this.space.style.height = shown.length * ROW + "px";
    this.draw();
  }

  draw() {
    const { element, view, shown } = this;
    const first = Math.max(0, Math.floor(element.scrollTop / ROW) - 3);
    const count = Math.min(shown.length - first, Math.ceil(element.clientHeight / ROW) + 6);
    while (this.pool.length < count) this.pool.push(this.make());
    this.pool.forEach((row, slot) => {
      const at = first + slot, index = shown[at];
      row.hidden = slot >= count;
      if (row.hidden) return;
      this.fill(row, at, index, view);
    });
    const chosen = shown.length ? "row-" + shown[this.at] : "";
    if (chosen && this.at >= first && this.at < first + count) element.setAttribute("aria-activedescendant", chosen);
    else element.removeAttribute("aria-activedescendant");
  }

  make() {
    const row = document.createElement("div");
    row.className = "row";
    row.setAttribute("role", "option");
    for (let side = 0; side < 2; side++) {
      const cell = document.createElement("div");
      cell.append(document.createElement("i"), document.createElement("b"), document.createElement("span"));
      row.append(cell);
    }
    this.element.append(row);
    return row;
  }

  fill(row, at, index, view) {
    const part = view.parts[view.part[index]], gone = view.gone[index] === 1, chosen = at === this.at;
    row.style.transform = "translateY(" + at * ROW + "px)";
    row.dataset.at = at;
    row.id = "row-" + index;
    row.className = "row" + (gone ? " gone" : "") + (chosen ? " on" : "") + (view.firstBehind === index ? " seam" : "");
    row.setAttribute("aria-selected", chosen ? "true" : "false");
    row.setAttribute("aria-posinset", at + 1);
    row.setAttribute("aria-setsize", this.shown.length);
    const [left, right] = row.children;
    left.children[0].className = "p-" + part;
    const marks = (view.error.has(index) ? " · error" : "") + (view.hole.has(index) ? " · no words carry it" : "");
    left.children[1].textContent =
      view.name(index) + " · " + short(view.tokens[index]) + " tokens" + marks;
    left.children[2].textContent = view.preview[index] || " ";
    right.children[0].className = gone ? "" : "p-" + part;
    const added = view.added.has(index) ? " · with the notice" : "";
    right.children[1].textContent = gone ? "left out" : "stays" + added;
    right.children[2].textContent = gone ? view.address[index] || " " : view.preview[index] || " ";
  }

  choose(at) {
    this.at = Math.max(0, Math.min(this.shown.length - 1, at));
    const { element } = this, top = this.at * ROW;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + ROW > element.scrollTop + element.clientHeight) element.scrollTop = top + ROW - element.clientHeight;
    this.draw();
    if (this.moved) this.moved(this.shown[this.at]);
  }

  reveal(index) {
    const at = this.shown.indexOf(index);
    if (at < 0) return false;
    this.choose(at);
    this.element.scrollTop = Math.max(0, at * ROW - this.element.clientHeight / 3);
    this.draw();
    return true;
  }

  key(event) {
    const page = Math.max(1, Math.floor(this.element.clientHeight / ROW) - 1);
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page }[event.key];
    if (step) this.choose(this.at + step);
    else if (event.key === "Home") this.choose(0);
    else if (event.key === "End") this.choose(this.shown.length - 1);
    else if ((event.key === "Enter" || event.key === " ") && this.shown.length) this.opened(this.shown[this.at]);
    else return;
    event.preventDefault();
  }
}
