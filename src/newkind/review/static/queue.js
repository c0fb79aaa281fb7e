// The queue: one card per decision.

import { refreshParts, state } from "./api.js";
import { onKey } from "./keys.js";
import { carryOut, setUpPage, startPage } from "./page.js";

const cards = () => [...document.querySelectorAll("#queue .card")];
let at = 0;

function goTo(index) {
  at = Math.max(0, Math.min(cards().length - 1, index));
  cards()[at]?.focus({ preventScroll: true });
  cards()[at]?.scrollIntoView({ block: "nearest" });
}

const decisions = {
  merge: ({ a, b }) => ({ kind: "merge", categories: [a, b] }),
  different: ({ a, b }) => ({ kind: "note", category: a, different: b }),
  approve: ({ a }) => ({ kind: "approve", category: a }),
};

async function act(card, action) {
  at = cards().indexOf(card);
  await carryOut(decisions[action](card.dataset));
}

function press(key) {
  const card = cards()[at];
  const action = { y: { merge: "merge", approve: "approve" }, n: { merge: "different" } }[key][card?.dataset.kind];
  if (card && action) act(card, action);
}

setUpPage({
  async refresh() {
    await refreshParts("#queue", "#progress");
    goTo(at);
  },
});
document.addEventListener("click", (event) => {
  const button = event.target.closest("#queue [data-do]");
  if (button) act(button.closest(".card"), button.dataset.do);
});
document.addEventListener("focusin", (event) => {
  const card = event.target.closest("#queue .card");
  if (card) at = cards().indexOf(card);
});
onKey(["j", "ArrowDown"], "Next card", () => goTo(at + 1));
onKey(["k", "ArrowUp"], "Previous card", () => goTo(at - 1));
onKey("Enter", "Look at it", (event) => {
  const link = event.target.closest("a, button");
  if (link) link.click();
  else location.assign(cards()[at]?.dataset.href);
});
if (!state.isReadOnly) {
  onKey("y", "Yes: merge, or approve", () => press("y"));
  onKey("n", "No: the two are different", () => press("n"));
  onKey("g", "Grow the category", () => cards()[at]?.querySelector("[data-key=g]")?.click());
}
goTo(0);
await startPage();
