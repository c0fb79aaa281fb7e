// The map of all images, with a lasso.

import { get, newest } from "./api.js";
import { Grid } from "./grid.js";
import { describeKey, onKey } from "./keys.js";
import { attempt, setUpPage, startPage } from "./page.js";
import { centresOf, drawMap, drawOutline } from "./map_drawing.js";
import { setUpSelection } from "./selection.js";

const REACH = 12; // pixels around the pointer in which a point is found
const frame = document.getElementById("map");
const view = { scale: 1, x: 0, y: 0, width: 0, height: 0, ratio: 1, colour: "kind", mode: "lasso" };
let data = null;
let grid = null;

const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer;

const ask = newest(() => get("/api/map"));

async function load() {
  const found = await ask();
  if (!found) return;
  data = {
    lines: new Int32Array(bytes(found.lines)),
    points: new Uint16Array(bytes(found.points)),
    category: new Int32Array(bytes(found.category)),
    kind: new Uint8Array(bytes(found.kind)),
    confidence: new Uint8Array(bytes(found.confidence)),
    status: new Uint8Array(bytes(found.status)),
    statuses: found.statuses,
    categories: found.categories,
  };
  data.centres = centresOf(data);
  data.place = new Map(Array.from(data.lines, (line, i) => [line, i]));
  frame.querySelector(".wait").hidden = true;
  grid.show(grid.images.map(({ line }) => imageOf(line)), { keepPlace: true });
  document.getElementById("method").textContent = `Positions: ${found.method}. Ctrl and the mouse wheel zoom.`;
  draw();
}

const toX = (x) => view.x + (0.03 + (0.94 * x) / 65535) * view.width * view.scale;
const toY = (y) => view.y + (0.97 - (0.94 * y) / 65535) * view.height * view.scale;
const screenX = (i) => toX(data.points[2 * i]);
const screenY = (i) => toY(data.points[2 * i + 1]);

let isWaiting = false;
function draw() {
  if (isWaiting || !data) return;
  isWaiting = true;
  requestAnimationFrame(() => {
    isWaiting = false;
    drawMap(frame.querySelector(".points"), data, view, { screenX, screenY, toX, toY, selected: grid.selected });
  });
}

function resize() {
  view.width = frame.clientWidth;
  view.height = frame.clientHeight;
  view.ratio = Math.min(window.devicePixelRatio || 1, 2);
  for (const canvas of frame.querySelectorAll("canvas")) {
    canvas.width = view.width * view.ratio;
    canvas.height = view.height * view.ratio;
  }
  draw();
}

function zoom(factor, x = view.width / 2, y = view.height / 2) {
  const scale = factor ? Math.max(1, Math.min(40, view.scale * factor)) : 1;
  const change = scale / view.scale;
  view.x = scale === 1 ? 0 : x - (x - view.x) * change;
  view.y = scale === 1 ? 0 : y - (y - view.y) * change;
  view.scale = scale;
  draw();
}

function nearest(x, y) {
  let best = -1;
  let least = REACH * REACH;
  for (let i = 0; i < data.lines.length; i++) {
    const distance = (screenX(i) - x) ** 2 + (screenY(i) - y) ** 2;
    if (distance < least) [least, best] = [distance, i];
  }
  return best;
}

// Whether a point lies inside a closed line, by the number of its edges to the right of the point.
function isInside(x, y, line) {
  let inside = false;
  for (let i = 0, j = line.length - 1; i < line.length; j = i++) {
    const [ax, ay] = line[i];
    const [bx, by] = line[j];
    if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) inside = !inside;
  }
  return inside;
}

// The keyboard's counterpart of the lasso: zoom and move, then select what is in view.
function selectView() {
  if (!data) return;
  const isVisible = (x, y) => x >= 0 && y >= 0 && x <= view.width && y <= view.height;
  choose([...data.lines.keys()].filter((i) => isVisible(screenX(i), screenY(i))), false);
}

function moveView(dx, dy) {
  view.x += dx * view.width;
  view.y += dy * view.height;
  draw();
}

function selectInside(line, isAdding) {
  const found = [];
  for (let i = 0; i < data.lines.length; i++) if (isInside(screenX(i), screenY(i), line)) found.push(i);
  choose(found, isAdding);
}

// An image of the grid below, as it is now.
function imageOf(line) {
  const i = data.place.get(line);
  return { line, confidence: data.confidence[i] / 100, status: data.statuses[data.status[i]] };
}

// Show these points in the grid below, all selected.
async function choose(indices, isAdding) {
  const lines = new Set([...(isAdding ? grid.selected : []), ...indices.map((i) => data.lines[i])]);
  grid.show([...lines].map(imageOf));
  grid.selectAll();
  draw();
}

function connectPointers() {
  const canvas = frame.querySelector(".marks");
  const hover = frame.querySelector(".hover");
  let line = null;
  let last = null;
  const placeOf = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (!data) return;
    canvas.setPointerCapture(event.pointerId);
    last = placeOf(event);
    line = view.mode === "lasso" ? [last] : null;
    hover.hidden = true;
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!data) return;
    const at = placeOf(event);
    if (!last) return showHover(hover, at);
    if (line) {
      line.push(at);
      drawOutline(canvas, line, view);
    } else {
      view.x += at[0] - last[0];
      view.y += at[1] - last[1];
      draw();
    }
    last = at;
  });
  const end = (event) => {
    if (line && line.length > 6) selectInside(line, event.shiftKey);
    else if (line) {
      const i = nearest(...line[0]);
      if (i >= 0) choose([i], true);
    }
    line = last = null;
    drawOutline(canvas, [], view);
  };
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", () => (line = last = null));
  canvas.addEventListener("pointerleave", () => (hover.hidden = true));
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoom(Math.exp(-event.deltaY / 300), ...placeOf(event));
  }, { passive: false });
  canvas.locate = (i) => [screenX(i), screenY(i)]; // for tests: where point i is
}

function showHover(hover, [x, y]) {
  const i = nearest(x, y);
  hover.hidden = i < 0;
  if (i < 0) return;
  hover.querySelector("img").src = `/thumb/${data.lines[i]}`;
  hover.querySelector("p").textContent = data.categories[data.category[i]] ?? "no category";
  hover.style.left = `${Math.max(4, Math.min(view.width - 150, x + 14))}px`;
  hover.style.top = `${Math.max(4, Math.min(view.height - 180, y + 14))}px`;
}

function connectTools() {
  const factors = { in: 1.6, out: 1 / 1.6, all: 0 };
  for (const button of document.querySelectorAll("[data-zoom]")) button.addEventListener("click", () => zoom(factors[button.dataset.zoom]));
  for (const name of ["colour", "mode"]) {
    const buttons = [...document.querySelectorAll(`[data-${name}]`)];
    for (const button of buttons) {
      button.addEventListener("click", () => {
        view[name] = button.dataset[name];
        frame.dataset.mode = view.mode;
        document.querySelector(".legend").hidden = view.colour !== "kind";
        for (const each of buttons) each.ariaPressed = String(each === button);
        draw();
      });
    }
  }
  document.getElementById("select-view").addEventListener("click", selectView);
  onKey("s", "Select all images in view", selectView);
  const steps = { ArrowLeft: [0.2, 0], ArrowRight: [-0.2, 0], ArrowUp: [0, 0.2], ArrowDown: [0, -0.2] };
  frame.addEventListener("keydown", (event) => {
    if (!steps[event.key] || view.scale === 1) return;
    event.preventDefault();
    moveView(...steps[event.key]);
  });
  describeKey(Object.keys(steps), "Move the map, if it has the focus");
  onKey("+", "Zoom in", () => zoom(1.6));
  onKey("-", "Zoom out", () => zoom(1 / 1.6));
  onKey("0", "Show the whole map", () => zoom(0));
}

if (frame) {
  grid = new Grid(document.getElementById("grid"), { label: "Selected images" });
  setUpSelection(grid);
  grid.addEventListener("selection", draw);
  setUpPage({ isBusy: () => grid.selected.size > 0, refresh: load });
  connectPointers();
  connectTools();
  new ResizeObserver(resize).observe(frame);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  await startPage(() => attempt(load));
  frame.focus({ preventScroll: true });
} else {
  await startPage();
}
