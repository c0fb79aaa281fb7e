// Growing a category, page by page, until its purity is known.

import { isCurrent, make, plural, post, refreshParts, state } from "./api.js";
import { onKey } from "./keys.js";
import { Marking } from "./marking.js";
import { attempt, setUpPage, startPage, tell } from "./page.js";

const { id: category, name } = document.getElementById("grow").dataset;
const list = document.getElementById("candidates");
const next = document.getElementById("next");
const growth = crypto.randomUUID();
const marking = new Marking(list, { onChange: label, text: "The image does not belong to the category" });
let page = null;

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

const answer = () => ask({ page: page.page, wrong: marking.marked });

function show() {
  document.getElementById("grow").dataset.page = page.page;
  list.hidden = page.phase === "done";
  marking.show([{ lines: page.shown, label: "Candidates" }]);
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
  next.hidden = state.isReadOnly;
  if (page.phase === "done") showBound();
  else label();
}

function label() {
  const n = marking.marked.length;
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

next.addEventListener("click", () => (page.phase === "done" ? finish() : answer()));
onKey("Enter", "Next page, or approve", () => next.click());
setUpPage({ isBusy: () => page?.phase !== "done" && page?.looks > 0, refresh: async () => ask({ category }) });
await startPage(() => ask({ category }));
