// Two categories side by side.

import { state } from "./api.js";
import { onKey } from "./keys.js";
import { carryOut, setUpPage, startPage } from "./page.js";

const { a, b } = document.getElementById("merge").dataset;
const actions = {
  "into-1": { kind: "merge", categories: [b], into: a },
  "into-2": { kind: "merge", categories: [a], into: b },
  different: { kind: "note", category: a, different: b },
};

function act(name) {
  setUpPage({ refresh: async () => location.assign("/") });
  carryOut(actions[name]);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("#merge [data-do]");
  if (button) act(button.dataset.do);
});
if (!state.isReadOnly) {
  onKey("1", "Merge as the first one", () => act("into-1"));
  onKey("2", "Merge as the second one", () => act("into-2"));
  onKey("n", "The two are different", () => act("different"));
}
await startPage();
