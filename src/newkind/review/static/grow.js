// Growing a category, page by page, until its purity is known.

import { isCurrent, make, plural, post, refreshParts, state, thumbnail } from "./api.js";
import { describeKey, onKey } from "./keys.js";
import { attempt, setUpPage, startPage, tell } from "./page.js";
import { openViewer } from "./viewer.js";

const { id: category, name } = document.getElementById("grow").dataset;
const list = document.getElementById("candidates");
const next = document.getElementById("next");
const growth = crypto.randomUUID();
let page = null;
let active = 0;

const isWrong = (item) => item.ariaPressed === "true";
const cells = () => [...list.querySelectorAll("button")];

async function ask(content) {
  next.disabled = true;
  const done = await attempt(async () => {
    page = await post("/api/grow", { growth, based_on: state.number, ...content });
    isCurrent(page.number);
    show();
  });
  next.disabled = false;
  if (done) await refreshParts("#progress");
}

const answer = () => ask({ page: page.page, wrong: cells().filter(isWrong).map((item) => Number(item.dataset.line)) });

function show() {
  document.getElementById("grow").dataset.page = page.page;
  list.replaceChildren(...page.shown.map(makeCell));
  list.hidden = page.phase === "done";
  active = 0;
  mark();
  const number = (n) => n.toLocaleString("en");
  const ranks = `candidates ${number(page.first)} to ${number(page.last)} of ${number(page.n_candidates)}, the most likely first.`;
  const where = {
    double: `Finding the end of the category: ${ranks}`,
    bisect: `Finding the end of the category: ${ranks}`,
    sample: `Random sample of the first ${plural(page.cut, "candidate")}; ${plural(page.looks_left, "look")} left.`,
    done: "",
  };
  document.getElementById("where").textContent = where[page.phase];
  document.getElementById("question").textContent = page.phase === "done" ? "Done" : `Which of these are not ${name}?`;
  next.hidden = false;
  if (page.phase === "done") showBound();
  else label();
}

function label() {
  const n = cells().filter(isWrong).length;
  next.replaceChildren(n ? `${plural(n, "wrong image")}, next page ` : "All right, next page ", make("kbd", { textContent: "Enter" }));
}

function showBound() {
  const { n, purity, confidence, looks } = page.bound;
  const percent = (value) => `${Math.floor(100 * value + 1e-9)} %`;
  const start = n ? `At least ${percent(purity)} of ${plural(n, "image")} belong to ` : "No further images belong to ";
  const end = n ? `, with ${percent(confidence)} confidence, after ${plural(looks, "look")}.` : `, after ${plural(looks, "look")}.`;
  const place = document.getElementById("bound");
  place.replaceChildren(start, make("span", { className: name.length < 20 ? "whole" : "", textContent: name }), end);
  place.hidden = false;
  if (page.unlooked) next.replaceChildren(`Approve ${plural(page.unlooked, "image")} without looking at them `, make("kbd", { textContent: "Enter" }));
  else next.replaceChildren("Back to the category ", make("kbd", { textContent: "Enter" }));
}

async function finish() {
  next.disabled = true;
  if (page.unlooked) {
    const done = await attempt(async () => {
      const made = await post("/api/grown", { growth, based_on: state.number });
      tell(made.text);
    });
    next.disabled = false;
    if (!done) return;
  }
  location.assign(`/category?id=${encodeURIComponent(category)}`);
}

function makeCell(line, i) {
  const image = make("img", { src: thumbnail(line), alt: `Candidate ${i + 1}` });
  const cell = make("button", { type: "button", ariaPressed: "false", tabIndex: i ? -1 : 0 }, image);
  cell.dataset.line = line;
  cell.addEventListener("click", () => {
    active = i;
    toggle();
  });
  return make("li", {}, cell);
}

function toggle() {
  const cell = cells()[active];
  if (!cell) return;
  cell.ariaPressed = String(!isWrong(cell));
  mark();
  label();
}

function mark() {
  for (const [i, cell] of cells().entries()) cell.tabIndex = i === active ? 0 : -1;
  cells()[active]?.focus({ preventScroll: true });
}

function step(by) {
  active = Math.max(0, Math.min(cells().length - 1, active + by));
  mark();
  cells()[active]?.scrollIntoView({ block: "nearest" });
}

function perRow() {
  const top = cells()[0]?.offsetTop;
  const n = cells().findIndex((cell) => cell.offsetTop > top);
  return n < 0 ? cells().length : n;
}

function open() {
  const images = page.shown.map((line) => ({ line, confidence: 0, status: "" }));
  const stand = { images, selected: new Set(), element: list, goTo: (i) => (active = i), toggle: () => toggle() };
  openViewer(stand, active);
}

next.addEventListener("click", () => (page.phase === "done" ? finish() : answer()));
onKey("ArrowRight", "Next image", () => step(1));
onKey("ArrowLeft", "Previous image", () => step(-1));
onKey("ArrowDown", "Image below", () => step(perRow()));
onKey("ArrowUp", "Image above", () => step(-perRow()));
onKey([" ", "x"], "The image does not belong to the category", toggle);
onKey("o", "Open the image at full size", open);
onKey("Enter", "Next page, or approve", () => next.click());
describeKey("Click", "Mark an image that does not belong");
setUpPage({ isBusy: () => page?.phase !== "done" && page?.looks > 0, refresh: async () => ask({ category }) });
await startPage(() => ask({ category }));
