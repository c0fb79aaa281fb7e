// A list of images, some of which are marked as wrong, by keys or by clicks.

import { make, thumbnail } from "./api.js";
import { describeKey, onKey } from "./keys.js";
import { openViewer } from "./viewer.js";

const isMarked = (cell) => cell.ariaPressed === "true";

export class Marking {
  // `onChange` is called when a mark changes; `text` says what a mark means.
  constructor(list, { onChange, text }) {
    Object.assign(this, { list, onChange, active: 0 });
    onKey("ArrowRight", "Next image", () => this.step(1));
    onKey("ArrowLeft", "Previous image", () => this.step(-1));
    onKey("ArrowDown", "Image below", () => this.step(this.perRow));
    onKey("ArrowUp", "Image above", () => this.step(-this.perRow));
    onKey([" ", "x"], text, () => this.toggle(this.active));
    onKey("o", "Open the image at full size", () => this.open());
    describeKey("Click", text);
  }

  // Show other images, none of them marked. `below` makes what is shown below an image, from its place.
  show(lines, below = () => []) {
    const items = lines.map((line, i) => {
      const cell = make("button", { type: "button", ariaPressed: "false" }, make("img", { src: thumbnail(line), alt: `Image ${i + 1}` }));
      cell.dataset.line = line;
      cell.addEventListener("click", () => this.toggle(i));
      return make("li", {}, cell, ...below(i));
    });
    this.list.replaceChildren(...items);
    this.active = 0;
    this.focus();
  }

  get cells() {
    return [...this.list.querySelectorAll("button[aria-pressed]")];
  }

  get marked() {
    return this.cells.filter(isMarked).map(({ dataset }) => Number(dataset.line));
  }

  get others() {
    return this.cells.filter((cell) => !isMarked(cell)).map(({ dataset }) => Number(dataset.line));
  }

  get perRow() {
    const top = this.cells[0]?.offsetTop;
    const n = this.cells.findIndex((cell) => cell.offsetTop > top);
    return n < 0 ? this.cells.length : n;
  }

  toggle(i) {
    const cell = this.cells[i];
    if (!cell) return;
    this.active = i;
    cell.ariaPressed = String(!isMarked(cell));
    this.focus();
    this.onChange();
  }

  focus() {
    for (const [i, cell] of this.cells.entries()) cell.tabIndex = i === this.active ? 0 : -1;
    this.cells[this.active]?.focus({ preventScroll: true });
  }

  step(by) {
    this.active = Math.max(0, Math.min(this.cells.length - 1, this.active + by));
    this.focus();
    this.cells[this.active]?.scrollIntoView({ block: "nearest" });
  }

  open() {
    openViewer({
      images: this.cells.map(({ dataset }) => ({ line: Number(dataset.line) })),
      selected: { has: (line) => this.marked.includes(line) },
      words: ["Wrong", "Not wrong"],
      element: { focus: () => this.focus() },
      goTo: (i) => (this.active = i),
      toggle: (i) => this.toggle(i),
    }, this.active);
  }
}
