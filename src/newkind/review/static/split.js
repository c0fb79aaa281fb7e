// Proposed sub-groups of a category.

import { get, make, newest, plural, state, thumbnail } from "./api.js";
import { onKey } from "./keys.js";
import { attempt, carryOut, setUpPage, startPage, tell } from "./page.js";

const FIRST = 18; // images of a group that are shown at once
const category = document.getElementById("split").dataset.id;
const field = document.getElementById("n");
const list = document.getElementById("groups");
let groups = [];

const ask = newest(() => get("/api/split", { id: category, n: field.value }));

async function load() {
  await attempt(async () => {
    const found = await ask();
    if (!found) return;
    groups = found.groups;
    list.replaceChildren(...groups.map(({ lines }, i) => makeGroup(lines, i)));
  });
}

function makeGroup(lines, i) {
  const box = make("input", { type: "checkbox", checked: i > 0, disabled: groups.length < 2 });
  const text = make("span", { textContent: `Group ${i + 1}, ${plural(lines.length, "image")}` });
  const strip = make("div", { className: "strip large" });
  const show = (n) => strip.replaceChildren(...lines.slice(0, n).map((line) => make("img", { src: thumbnail(line), alt: "", loading: "lazy" })));
  show(FIRST);
  const more = make("button", { type: "button", textContent: `Show all ${lines.length.toLocaleString("en")}`, hidden: lines.length <= FIRST });
  more.addEventListener("click", () => {
    show(lines.length);
    more.hidden = true;
  });
  return make("li", {}, make("label", {}, box, text, make("kbd", { textContent: `${i + 1}` })), strip, more);
}

async function split() {
  const apart = groups.filter((_, i) => list.children[i].querySelector("input").checked);
  if (groups.length < 2 || !apart.length) return tell("Check the groups to put apart.", "failed");
  setUpPage({ refresh: async () => location.assign("/categories") });
  await carryOut({ kind: "split", category, groups: apart.map(({ lines }) => lines) });
}

field.addEventListener("change", load);
document.getElementById("do-split")?.addEventListener("click", split);
onKey(["1", "2", "3", "4", "5", "6", "7", "8"], "Put the group apart, or not", (event) => {
  list.children[Number(event.key) - 1]?.querySelector("input").click();
});
onKey("+", "More groups", () => change(1));
onKey("-", "Fewer groups", () => change(-1));
if (!state.isReadOnly) onKey("Enter", "Split", split);

function change(by) {
  field.value = String(Math.max(2, Math.min(8, groups.length + by)));
  load();
}

setUpPage({ refresh: load });
await startPage(load);
