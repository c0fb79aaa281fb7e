// Refit: what would move, before it is accepted.

import { isCurrent, make, plural, post, thumbnail } from "./api.js";
import { openDialog } from "./keys.js";
import { attempt, refreshPage, tell } from "./page.js";

const MOST_SHOWN = 12;

export async function showRefit() {
  tell("Refitting…");
  const refit = crypto.randomUUID();
  const plan = await post("/api/refit", { refit });
  tell("");
  const parts = plan.moves.map(({ from, to, n, lines }) => {
    const strip = make("div", { className: "strip", ariaHidden: "true" });
    strip.append(...lines.slice(0, MOST_SHOWN).map((line) => make("img", { src: thumbnail(line), alt: "", loading: "lazy" })));
    return make("li", {}, make("p", {}, `${plural(n, "image")} from `, make("b", { textContent: from }), " to ", make("b", { textContent: to })), strip);
  });
  const text = plan.n_moved ? `${plural(plan.n_moved, "image")} would move.` : "No image would move.";
  const known = plan.became_known.length ? ` Known from now on: ${plan.became_known.join(", ")}.` : "";
  const accept = make("button", { type: "button", className: "primary", textContent: "Accept", autofocus: true });
  const cancel = make("button", { type: "button", textContent: "Cancel" });
  const dialog = openDialog(
    "refit-plan", "Refit", make("h2", { textContent: "Refit" }),
    make("p", { textContent: `The model was fitted to your decisions. ${text}${known}` }),
    make("div", { className: "do" }, accept, cancel), make("ol", { className: "moves" }, ...parts),
  );
  cancel.addEventListener("click", () => dialog.close());
  accept.addEventListener("click", () => {
    dialog.close();
    attempt(async () => {
      const done = await post("/api/refit/accept", { refit });
      isCurrent(done.number);
      tell(done.text);
      await refreshPage();
    });
  });
}
