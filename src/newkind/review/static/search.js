// Images by a part of their names.

import { refreshParts } from "./api.js";
import { Filters } from "./filters.js";
import { Grid } from "./grid.js";
import { setUpPage, startPage } from "./page.js";
import { setUpSelection } from "./selection.js";

const grid = new Grid(document.getElementById("grid"));
const filters = new Filters(grid, { text: document.querySelector(".filters").dataset.text });
setUpSelection(grid, { onSimilar: (lines) => filters.showSimilar(lines) });
setUpPage({
  isBusy: () => grid.selected.size > 0,
  async refresh() {
    await refreshParts("#found");
    await filters.load({ keepPlace: true });
  },
});
await startPage(() => filters.load());
grid.element.focus({ preventScroll: true });
