// The queue: one card per decision.

import { refreshParts, state } from "./api.js";
import { onKey } from "./keys.js";
import { approveAs } from "./naming.js";
import { attempt, carryOut, setUpPage, startPage } from "./page.js";

const cards = () => [...document.querySelectorAll("#queue .card")];
let at = 0;
let isActing = false; // a second key must not decide about a card that appears after the first

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
  if (isActing) return;
  isActing = true;
  at = cards().indexOf(card);
  const { a, name, named } = card.dataset;
  try {
    if (action === "approve-as") await attempt(() => approveAs({ id: a, name, isNamed: named === "yes" }));
    else await carryOut(decisions[action](card.dataset));
  } finally {
    isActing = false;
  }
}

function press(key) {
  const card = cards()[at];
  const action = { y: { merge: "merge", approve: "approve" }, n: { merge: "different" } }[key][card?.dataset.kind];
  if (card && action) act(card, action);
}

setUpPage({
  async refresh() {
    await refreshParts("#queue", "#progress", "#refit");
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
onKey("Enter", "Look at it", () => {
  const address = cards()[at]?.dataset.href;
  if (address) location.assign(address);
});
if (!state.isReadOnly) {
  onKey("y", "Yes: merge, or approve", () => press("y"));
  onKey("n", "No: the two are different", () => press("n"));
  onKey("A", "Name the category and approve it", () => {
    if (cards()[at]?.dataset.kind === "approve") act(cards()[at], "approve-as"); // also if it has a name, which may be changed
  });
  onKey("g", "Grow the category", () => cards()[at]?.querySelector("[data-key=g]")?.click());
}
goTo(0);
await startPage();
