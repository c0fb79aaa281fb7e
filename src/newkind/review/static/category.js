// One category: all its images, and what can be done with it.

import { refreshParts, state } from "./api.js";
import { Filters } from "./filters.js";
import { Grid } from "./grid.js";
import { onKey } from "./keys.js";
import { approve, approveAs, rename } from "./naming.js";
import { attempt, carryOut, setUpPage, startPage } from "./page.js";
import { askText, chooseCategory } from "./palette.js";
import { setUpSelection } from "./selection.js";

const category = document.getElementById("category").dataset.id;
const nameNow = () => document.getElementById("category").dataset.name;
const isNamed = () => document.getElementById("category").dataset.named === "yes";
const now = () => ({ id: category, name: nameNow(), isNamed: isNamed() });
const grid = new Grid(document.getElementById("grid"), { label: `Images of ${nameNow()}` });
const filters = new Filters(grid, { id: category });
const { moveTo } = setUpSelection(grid, {
  category, onSimilar: (lines) => filters.showSimilar(lines), onOthers: () => attempt(approveOthers),
});

setUpPage({
  isBusy: () => grid.selected.size > 0,
  async refresh() {
    if (!(await refreshParts("#category", "#neighbours"))) return location.assign("/categories");
    await filters.load({ keepPlace: true });
  },
});

const actions = {
  approve: () => approve(category),
  "approve-as": async () => (await approveAs(now(), [...grid.selected], showInstead)) && grid.clearSelection(),
  rename: () => rename(now(), showInstead),
  async merge() {
    const other = await chooseCategory(`Merge ${nameNow()} with`, { near: category });
    if (!other) return;
    showInstead(other.id); // leads to the one that stays: a known class, one that has a name, or the larger one
    await carryOut({ kind: "merge", categories: [category, other.id] });
  },
  async note() {
    const text = await askText("Note", "", { action: "Save" });
    if (text) await carryOut({ kind: "note", category, text });
  },
};

// After a merge, the page of the category that this one became a part of is opened.
function showInstead(other) {
  setUpPage({ refresh: async () => location.assign(`/category?id=${encodeURIComponent(other)}`) });
}

// The selected images are wrong, and all others are right. A category without a name gets one by the same decision. The image with the
// focus is no selection: it would be rejected by mistake.
async function approveOthers() {
  const without = [...grid.selected];
  const done = isNamed() ? await approve(category, { without }) : await approveAs(now(), without, showInstead);
  if (done) grid.clearSelection();
}

const run = (action) => attempt(() => actions[action]());

document.addEventListener("click", (event) => {
  const button = event.target.closest("#category [data-do]");
  if (button) run(button.dataset.do);
});
if (!state.isReadOnly) {
  onKey("a", "Approve the category", () => run("approve"));
  onKey("A", "Name the category and approve it, without the selected images", () => run("approve-as"));
  onKey("r", "Rename the category", () => run("rename"));
  onKey("n", "Write a note about the category", () => run("note"));
  onKey("e", "Merge it with another category", () => run("merge"));
  onKey("g", "Grow the category", () => document.querySelector("[data-key=g]").click());
  onKey("s", "Split the category", () => document.querySelector("[data-key=s]").click());
  const digits = ["1", "2", "3", "4", "5", "6", "7", "8", "9"];
  onKey(digits, "Move the selected images to that neighbour", (event) => {
    const target = document.querySelectorAll("[data-drop]")[digits.indexOf(event.key)]?.dataset.drop;
    if (target && grid.chosen.length) moveTo(grid.chosen, { into: target });
  });
}
onKey("]", "Next category", () => location.assign(document.getElementById("category").dataset.next));
onKey("[", "Previous category", () => location.assign(document.getElementById("category").dataset.earlier));

// Drag and drop: onto a neighbour, or onto the place for a new category.
const place = (event) => (state.isReadOnly ? null : event.target.closest?.("[data-drop]"));
document.addEventListener("dragover", (event) => {
  if (!place(event)) return;
  event.preventDefault();
  place(event).classList.add("over");
});
document.addEventListener("dragleave", (event) => place(event)?.classList.remove("over"));
document.addEventListener("drop", (event) => {
  const target = place(event);
  if (!target) return;
  event.preventDefault();
  target.classList.remove("over");
  moveTo([...grid.selected], target.dataset.drop ? { into: target.dataset.drop } : {});
});

await startPage(() => filters.load());
if (!location.hash) grid.element.focus({ preventScroll: true });
