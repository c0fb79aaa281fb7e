// Images to check, one at a time.

import { breakable, decide, get, make, newest, plural, refreshParts, state, thumbnail } from "./api.js";
import { onKey } from "./keys.js";
import { attempt, setUpPage, startPage, tell } from "./page.js";
import { chooseCategory } from "./palette.js";
import { openViewer } from "./viewer.js";

const { kind } = document.getElementById("doubtful").dataset;
const place = document.getElementById("choices");
const skipped = new Set(); // they come first in the server's list, because it has no images that were decided about
let found = { images: [], categories: {}, n: 0 };
let now = null;
let shown = state.number; // number of the last event that is part of what is shown

const ask = newest(() => get("/api/doubtful", { kind, skip: skipped.size || "" }));

async function load() {
  now = null; // nothing is decided about an image that others may have decided about
  const done = await attempt(async () => {
    const answer = await ask();
    if (!answer) return;
    found = answer;
    shown = answer.number;
    show();
  });
  if (!done) show();
}

// Show the list again after decisions of other windows: what was skipped may not come first in it any more.
async function startAgain() {
  skipped.clear();
  await load();
}

// Show the next image. If all that were loaded have been seen, the following ones are loaded.
async function proceed() {
  show();
  if (!now && found.n > skipped.size) await load();
}

function show() {
  now = found.images.find(({ line }) => !skipped.has(line)) ?? null;
  const image = document.getElementById("image");
  image.hidden = !now;
  document.getElementById("doubtful").classList.toggle("empty", !now);
  document.getElementById("left").textContent = now ? `${plural(found.n, "image")} to check` : "";
  document.getElementById("file").textContent = now?.name ?? "";
  if (!now) {
    const text = skipped.size ? "Only images that you skipped are left to check here." : "Nothing is left to check here.";
    place.replaceChildren(make("p", { className: "note", textContent: text }), make("a", { className: "button", href: "/", textContent: "Back to the queue" }));
    return;
  }
  image.src = `/full/${now.line}`;
  image.alt = now.name;
  place.replaceChildren(...now.choices.map(makeChoice), ...(state.isReadOnly ? [] : others()));
}

function makeChoice([k, probability], i) {
  const { name, status, n, faces } = found.categories[k];
  const strip = make("span", { className: "strip" }, ...faces.map((line) => make("img", { src: thumbnail(line), alt: "" })));
  const facts = [probability === null ? "similar" : `${Math.round(100 * probability)} %`, plural(n, "image")];
  if (kind === "mislabelled" && i === 0) facts.unshift("present label"); // its category is that of its label
  const text = make("span", { className: "label" }, make("kbd", { textContent: `${i + 1}` }), make("b", { className: status }, ...breakable(name)), make("small", { textContent: facts.join(", ") }));
  const choice = make("button", { type: "button", className: "option", disabled: state.isReadOnly }, text, strip);
  choice.addEventListener("click", () => choose(i));
  return choice;
}

function others() {
  const button = (key, text, run) => {
    const made = make("button", { type: "button" }, `${text} `, make("kbd", { textContent: key }));
    made.addEventListener("click", run);
    return made;
  };
  return [make("div", { className: "do" }, button("v", "Another…", another), button("x", "Junk", junk), button("j", "Skip", skip))];
}

async function record(decision) {
  if (!now || state.isReadOnly) return;
  const { line } = now;
  now = null; // a second key must not decide about it again
  let isNext = false; // no other window has decided in between
  const done = await attempt(async () => {
    const { number, text } = await decide({ ...decision, lines: [line] });
    tell(text);
    isNext = number === shown + 1;
  });
  if (!done) return show();
  shown += 1;
  found.images = found.images.filter((each) => each.line !== line);
  found.n -= 1;
  await (isNext ? proceed() : startAgain());
  await refreshParts("#progress");
  if (state.number !== shown) await startAgain();
}

function choose(i) {
  const choice = now?.choices[i];
  if (choice) record({ kind: "approve", category: found.categories[choice[0]].id });
}

async function another() {
  if (!now) return;
  const target = await chooseCategory("Move to", { canCreate: true });
  if (target) await record({ kind: "move", ...(target.isNew ? { name: target.name } : { into: target.id }) });
}

function open() {
  if (now) openViewer({ images: [now], selected: new Set(), element: document.body, goTo: () => {} }, 0);
}

const junk = () => record({ kind: "junk" });

function skip() {
  if (!now) return;
  skipped.add(now.line);
  proceed();
}

document.getElementById("image").addEventListener("click", open);
onKey(["j", "ArrowRight"], "Skip the image", skip);
onKey("o", "Open the image at full size; + − zoom, Shift + arrows move it", open);
if (!state.isReadOnly) {
  onKey("1", "It is the first category", () => choose(0));
  onKey("2", "It is the second category", () => choose(1));
  onKey("3", "It is the third category", () => choose(2));
  onKey("v", "It is another category", another);
  onKey(["x", "Delete"], "It is junk", junk);
}
setUpPage({
  async refresh() {
    await startAgain();
    await refreshParts("#progress");
  },
});
await startPage(load);
