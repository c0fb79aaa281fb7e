// Refit: what would move, before it is accepted.

import { make, plural, post, state, thumbnail } from "./api.js";
import { openDialog } from "./keys.js";
import { refreshPage, tell } from "./page.js";

const MOST_SHOWN = 12;

export async function showRefit() {
  tell("Refitting…");
  const plan = await post("/api/refit");
  const parts = plan.moves.map(({ from, to, n, lines }) => {
    const strip = make("div", { className: "strip", ariaHidden: "true" });
    strip.append(...lines.slice(0, MOST_SHOWN).map((line) => make("img", { src: thumbnail(line), alt: "", loading: "lazy" })));
    return make("li", {}, make("p", {}, `${plural(n, "image")} from `, make("b", { textContent: from }), " to ", make("b", { textContent: to })), strip);
  });
  const text = plan.n_moved ? `${plural(plan.n_moved, "image")} would move.` : "No image would move.";
  const accept = make("button", { type: "button", className: "primary", textContent: "Accept", autofocus: true });
  const dialog = openDialog(
    "refit-plan", "Refit", make("h2", { textContent: "Refit" }),
    make("p", { textContent: `The model was fitted to your decisions. ${text}` }),
    make("ol", { className: "moves" }, ...parts), make("div", { className: "do" }, accept),
  );
  accept.addEventListener("click", async () => {
    dialog.close();
    try {
      const done = await post("/api/refit/accept", { refit: plan.refit, based_on: plan.number });
      state.number = done.number;
      tell(done.text);
      await refreshPage();
    } catch (error) {
      tell(error.message, "failed");
    }
  });
}
