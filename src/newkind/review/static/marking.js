// A list of images, some of which are marked as wrong, by keys or by clicks.

import { make, thumbnail } from "./api.js";
import { describeKey, onKey } from "./keys.js";
import { openViewer } from "./viewer.js";

const isMarked = (cell) => cell.ariaPressed === "true";

export class Marking {
  // `onChange` is called when a mark changes; `text` says what a mark means.
  constructor(place, { onChange, text }) {
    Object.assign(this, { place, onChange, active: 0 });
    onKey("ArrowRight", "Next image", () => this.step(1));
    onKey("ArrowLeft", "Previous image", () => this.step(-1));
    onKey("ArrowDown", "Image below", () => this.goTo(this.inRow(1)));
    onKey("ArrowUp", "Image above", () => this.goTo(this.inRow(-1)));
    onKey([" ", "x"], text, () => this.toggle(this.active));
    onKey("o", "Open the image at full size", () => this.open());
    describeKey("Click", text);
  }

  // Show other images, none of them marked, as one list per group. `head` is what is above the list, and `label` says what it has.
  show(groups) {
    let n = 0;
    const lists = groups.map(({ lines, label, head = [] }) => {
      const items = lines.map((line) => make("li", {}, this.makeCell(line, n++)));
      return make("section", {}, ...head, make("ol", { className: "candidates", ariaLabel: label }, ...items));
    });
    this.place.replaceChildren(...lists);
    this.active = 0;
    this.focus();
    if (window.scrollY > 0) this.cells[0]?.scrollIntoView({ block: "nearest" }); // the page is where the images before ended
  }

  makeCell(line, i) {
    const cell = make("button", { type: "button", ariaPressed: "false" }, make("img", { src: thumbnail(line), alt: `Image ${i + 1}` }));
    cell.dataset.line = line;
    cell.addEventListener("click", () => this.toggle(i));
    return cell;
  }

  get cells() {
    return [...this.place.querySelectorAll("button[aria-pressed]")];
  }

  get marked() {
    return this.cells.filter(isMarked).map(({ dataset }) => Number(dataset.line));
  }

  get others() {
    return this.cells.filter((cell) => !isMarked(cell)).map(({ dataset }) => Number(dataset.line));
  }

  // Place of the nearest image in the row below (1) or above (-1), also in another group; the present place if there is no such row.
  inRow(direction) {
    const places = this.cells.map((cell) => cell.getBoundingClientRect());
    const own = places[this.active];
    const far = (i) => (places[i].top - own.top) * direction;
    const beyond = [...places.keys()].filter((i) => far(i) > 1);
    const row = Math.min(...beyond.map(far));
    const aside = (i) => Math.abs(places[i].left - own.left);
    return beyond.filter((i) => far(i) < row + 1).reduce((best, i) => (best === undefined || aside(i) < aside(best) ? i : best), undefined) ?? this.active;
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
    this.goTo(Math.max(0, Math.min(this.cells.length - 1, this.active + by)));
  }

  goTo(i) {
    this.active = i;
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
