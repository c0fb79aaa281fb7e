// Decisions, which can be undone and redone.

import { refreshParts } from "./api.js";
import { setUpPage, startPage, undoOrRedo } from "./page.js";

for (const each of document.querySelectorAll("time")) each.textContent = new Date(each.dateTime).toLocaleString();
setUpPage({
  async refresh() {
    await refreshParts("#history", "#progress");
    for (const each of document.querySelectorAll("time")) each.textContent = new Date(each.dateTime).toLocaleString();
  },
});
document.addEventListener("click", (event) => {
  const button = event.target.closest("#history [data-do]");
  if (button) undoOrRedo(button.dataset.do, Number(button.dataset.event));
});
await startPage();
