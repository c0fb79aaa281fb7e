// A grid of any number of images, of which only the visible ones are in the document.

import { get, make, thumbnail } from "./api.js";

const OVERSCAN = 2; // rows above and below the window
const STATUS_MARKS = { approved: "✓", labelled: "label", junk: "junk", unsure: "?" };

export class Grid extends EventTarget {
  constructor(element, { label = "Images" } = {}) {
    super();
    this.element = element;
    this.images = []; // {line, confidence, status}
    this.selected = new Set(); // lines
    this.active = 0; // index of the cell with the keyboard's focus
    this.anchor = 0; // where a range starts
    this.cells = new Map(); // index -> element
    this.names = new Map(); // line -> name
    Object.assign(element, { tabIndex: 0, role: "listbox", ariaLabel: label, ariaMultiSelectable: "true" });
    element.classList.add("grid");
    this.sizer = make("div", { className: "sizer", role: "presentation" });
    element.replaceChildren(this.sizer);
    this.connect();
  }

  connect() {
    let isWaiting = false;
    const drawSoon = () => {
      if (isWaiting) return;
      isWaiting = true;
      requestAnimationFrame(() => {
        isWaiting = false;
        this.draw();
      });
    };
    window.addEventListener("scroll", drawSoon, { passive: true });
    new ResizeObserver(() => {
      this.measure();
      drawSoon();
    }).observe(this.element);
    this.element.addEventListener("keydown", (event) => this.onKey(event));
    this.element.addEventListener("focus", () => this.markActive());
    this.element.addEventListener("click", (event) => this.onClick(event));
    this.element.addEventListener("dblclick", (event) => {
      const cell = event.target.closest(".cell");
      if (cell && !event.target.closest("button")) this.open(Number(cell.dataset.index));
    });
    this.element.addEventListener("dragstart", (event) => this.onDrag(event));
  }

  // Show other images. The selection keeps the images that are still there.
  show(images, { keepPlace = false } = {}) {
    this.images = images;
    const there = new Set(images.map(({ line }) => line));
    const before = this.selected.size;
    this.selected = new Set([...this.selected].filter((line) => there.has(line)));
    this.active = keepPlace ? Math.max(0, Math.min(this.active, images.length - 1)) : 0;
    this.anchor = this.active;
    for (const cell of this.cells.values()) cell.remove();
    this.cells.clear();
    this.measure();
    this.draw();
    if (before !== this.selected.size) this.tellSelection();
  }

  measure() {
    const width = this.element.clientWidth;
    const wanted = parseFloat(getComputedStyle(this.element).getPropertyValue("--cell")) || 132;
    this.columns = Math.max(3, Math.floor(width / wanted));
    this.side = width / this.columns;
    this.rows = Math.ceil(this.images.length / this.columns);
    this.sizer.style.height = `${this.rows * this.side}px`;
  }

  // First and last index to draw.
  get range() {
    const top = this.element.getBoundingClientRect().top;
    const first = Math.floor(-top / this.side) - OVERSCAN;
    const last = Math.ceil((window.innerHeight - top) / this.side) + OVERSCAN;
    return [Math.max(0, first * this.columns), Math.min(this.images.length, last * this.columns)];
  }

  draw() {
    if (!this.side) return;
    const [first, end] = this.range;
    for (const [index, cell] of this.cells) {
      if (index >= first && index < end) continue;
      cell.remove();
      this.cells.delete(index);
    }
    for (let index = first; index < end; index++) {
      if (!this.cells.has(index)) this.cells.set(index, this.makeCell(index));
      this.place(this.cells.get(index), index);
    }
    this.markActive();
    this.nameCells();
  }

  place(cell, index) {
    const x = (index % this.columns) * this.side;
    const y = Math.floor(index / this.columns) * this.side;
    cell.style.transform = `translate(${x}px, ${y}px)`;
    cell.style.width = cell.style.height = `${this.side}px`;
  }

  makeCell(index) {
    const { line, confidence, status } = this.images[index];
    const cell = make("div", { className: "cell", role: "option", id: `cell-${line}`, draggable: true });
    cell.dataset.index = index;
    cell.dataset.line = line;
    cell.ariaSelected = String(this.selected.has(line));
    cell.ariaSetSize = String(this.images.length);
    cell.ariaPosInSet = String(index + 1);
    const image = make("img", { src: thumbnail(line), alt: "", decoding: "async", draggable: false });
    image.addEventListener("error", () => cell.classList.add("missing"));
    const open = make("button", { type: "button", className: "open", tabIndex: -1, ariaLabel: "Open", textContent: "⤢" });
    cell.append(image, make("span", { className: "tick", ariaHidden: "true" }), open);
    if (STATUS_MARKS[status]) cell.append(make("span", { className: `mark ${status}`, textContent: STATUS_MARKS[status] }));
    else cell.append(make("span", { className: "mark", textContent: `${Math.round(100 * confidence)} %` }));
    this.sizer.append(cell);
    return cell;
  }

  // Names of the visible images, for screen readers and tooltips.
  async nameCells() {
    clearTimeout(this.naming);
    this.naming = setTimeout(async () => {
      const unknown = [...this.cells.values()].map((cell) => Number(cell.dataset.line)).filter((line) => !this.names.has(line));
      if (unknown.length) {
        const { names } = await get("/api/names", { lines: unknown.slice(0, 500).join(",") }).catch(() => ({ names: {} }));
        for (const [line, name] of Object.entries(names)) this.names.set(Number(line), name);
      }
      for (const cell of this.cells.values()) {
        const name = this.names.get(Number(cell.dataset.line));
        if (!name || cell.title) continue;
        const { confidence, status } = this.images[Number(cell.dataset.index)];
        cell.title = name;
        cell.ariaLabel = `${name}, ${status}, ${Math.round(100 * confidence)} %`;
      }
    }, 120);
  }

  markActive() {
    for (const cell of this.cells.values()) cell.classList.toggle("active", Number(cell.dataset.index) === this.active);
    const active = this.cells.get(this.active);
    if (active) this.element.setAttribute("aria-activedescendant", active.id);
  }

  get activeLine() {
    return this.images[this.active]?.line;
  }

  // Lines that an action is about: the selection, or the image with the focus.
  get chosen() {
    if (this.selected.size) return [...this.selected];
    const isFocused = document.activeElement === this.element && this.activeLine !== undefined;
    return isFocused ? [this.activeLine] : [];
  }

  goTo(index) {
    if (!this.images.length) return;
    this.active = Math.max(0, Math.min(this.images.length - 1, index));
    const top = this.element.getBoundingClientRect().top + Math.floor(this.active / this.columns) * this.side;
    const head = document.querySelector(".sticky")?.getBoundingClientRect().bottom ?? 0;
    if (top < head) window.scrollBy(0, top - head - 8);
    else if (top + this.side > window.innerHeight - 8) window.scrollBy(0, top + this.side - window.innerHeight + 8);
    this.draw();
  }

  onKey(event) {
    if (!this.images.length) return;
    const visibleRows = Math.max(1, Math.floor(window.innerHeight / this.side) - 1);
    const steps = {
      ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.columns, ArrowDown: this.columns,
      PageUp: -visibleRows * this.columns, PageDown: visibleRows * this.columns,
      Home: -this.images.length, End: this.images.length,
    };
    if (event.key in steps && !event.ctrlKey && !event.metaKey) {
      const from = this.active;
      this.goTo(this.active + steps[event.key]);
      if (event.shiftKey) this.selectRange(from, this.active, true);
      else this.anchor = this.active;
    } else if (event.key === " ") {
      this.toggle(this.active);
    } else if (event.key === "Enter") {
      this.open(this.active);
    } else if (event.key === "a" && (event.ctrlKey || event.metaKey)) {
      this.selectAll();
    } else if (event.key === "Escape" && this.selected.size) {
      this.clearSelection();
    } else {
      return;
    }
    event.preventDefault();
  }

  onClick(event) {
    const cell = event.target.closest(".cell");
    if (!cell) return;
    const index = Number(cell.dataset.index);
    this.element.focus({ preventScroll: true });
    if (event.target.closest(".open")) {
      this.open(index);
      return;
    }
    this.active = index;
    if (event.shiftKey) this.selectRange(this.anchor, index, true);
    else this.toggle(index);
    this.anchor = index;
    this.markActive();
  }

  onDrag(event) {
    const cell = event.target.closest(".cell");
    if (!cell) return;
    const line = Number(cell.dataset.line);
    if (!this.selected.has(line)) {
      this.clearSelection();
      this.toggle(Number(cell.dataset.index));
    }
    event.dataTransfer.effectAllowed = "move";
    event.dataTransfer.setData("text/plain", `${this.selected.size}`);
  }

  toggle(index) {
    const line = this.images[index]?.line;
    if (line === undefined) return;
    if (!this.selected.delete(line)) this.selected.add(line);
    this.tellSelection();
  }

  selectRange(from, to, isOn) {
    for (let i = Math.min(from, to); i <= Math.max(from, to); i++) {
      if (isOn) this.selected.add(this.images[i].line);
      else this.selected.delete(this.images[i].line);
    }
    this.tellSelection();
  }

  selectAll() {
    this.selected = new Set(this.images.map(({ line }) => line));
    this.tellSelection();
  }

  clearSelection() {
    this.selected.clear();
    this.tellSelection();
  }

  tellSelection() {
    for (const cell of this.cells.values()) cell.ariaSelected = String(this.selected.has(Number(cell.dataset.line)));
    this.dispatchEvent(new Event("selection"));
  }

  open(index) {
    this.active = index;
    this.markActive();
    this.dispatchEvent(new CustomEvent("open", { detail: index }));
  }
}

// Images from the compact lists of /api/lines.
export function unpack({ lines, confidence, status, statuses }) {
  return lines.map((line, i) => ({ line, confidence: confidence[i] / 100, status: statuses[status[i]] }));
}
