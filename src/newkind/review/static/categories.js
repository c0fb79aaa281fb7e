// All categories, with a filter.

import { plural, refreshParts } from "./api.js";
import { onKey } from "./keys.js";
import { setUpPage, startPage } from "./page.js";

const find = document.getElementById("find");
const kind = document.getElementById("kind");

function filter() {
  const text = find.value.trim().toLowerCase();
  let n = 0;
  for (const item of document.querySelectorAll("#categories li")) {
    const { name, status, settled } = item.dataset;
    item.hidden = !name.includes(text) || (kind.value !== "" && kind.value !== status && kind.value !== settled);
    n += !item.hidden;
  }
  document.getElementById("nothing").hidden = n > 0;
  document.getElementById("categories").ariaLabel = plural(n, "category", "categories");
}

function step(by) {
  const links = [...document.querySelectorAll("#categories li:not([hidden]) a")];
  const at = links.indexOf(document.activeElement);
  links[Math.max(0, Math.min(links.length - 1, at + by))]?.focus();
}

// Number of tiles in a row, by the places of the first ones.
function columns() {
  const links = [...document.querySelectorAll("#categories li:not([hidden]) a")];
  const top = links[0]?.getBoundingClientRect().top;
  const n = links.findIndex((link) => link.getBoundingClientRect().top > top + 5);
  return n < 0 ? links.length : n;
}

find.addEventListener("input", filter);
kind.addEventListener("change", filter);
find.addEventListener("keydown", (event) => event.key === "Enter" && step(1));
onKey(["ArrowRight", "j"], "Next category", () => step(1));
onKey(["ArrowLeft", "k"], "Previous category", () => step(-1));
onKey("ArrowDown", "Category below", () => step(columns()));
onKey("ArrowUp", "Category above", () => step(-columns()));
onKey("f", "Find a category", () => find.focus());
setUpPage({
  async refresh() {
    await refreshParts("#categories", "#progress");
    filter();
  },
});
await startPage();
