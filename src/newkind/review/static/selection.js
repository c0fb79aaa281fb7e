// What can be done with the selected images of a grid.

import { plural, state } from "./api.js";
import { describeKey, onKey } from "./keys.js";
import { attempt, carryOut } from "./page.js";
import { chooseCategory } from "./palette.js";
import { openViewer } from "./viewer.js";

// `category` is the category that the images are shown in, if there is one; `onSimilar` shows similar images first;
// `onOthers` approves the category without the selected images.
export function setUpSelection(grid, { category = "", onSimilar = null, onOthers = null } = {}) {
  const bar = document.querySelector(".selection");
  const actions = {
    async move() {
      const lines = grid.chosen;
      if (!lines.length) return;
      await attempt(async () => {
        const title = `Move ${plural(lines.length, "image")} to`;
        const target = await chooseCategory(title, { near: category, canCreate: true });
        if (target) await moveTo(lines, target.isNew ? { name: target.name } : { into: target.id });
      });
    },
    confirm: () => act(category ? { kind: "approve", category } : { kind: "approve" }),
    reject: () => category && act({ kind: "reject", category }),
    others: () => onOthers?.(),
    junk: () => act({ kind: "junk" }),
    similar: () => grid.chosen.length && onSimilar?.(grid.chosen),
    clear: () => grid.clearSelection(),
  };

  async function act(decision) {
    const lines = grid.chosen;
    if (!lines.length || state.isReadOnly) return;
    if (await carryOut({ ...decision, lines })) grid.clearSelection();
  }

  async function moveTo(lines, target) {
    if (await carryOut({ kind: "move", lines, ...target })) grid.clearSelection();
  }

  function show() {
    bar.hidden = grid.selected.size === 0;
    bar.querySelector("[data-count]").textContent = `${plural(grid.selected.size, "image")} selected`;
  }

  bar.addEventListener("click", (event) => actions[event.target.closest("button")?.dataset.do]?.());
  grid.addEventListener("selection", show);
  grid.addEventListener("open", ({ detail }) => openViewer(grid, detail));
  bar.querySelector("[data-do=reject]")?.toggleAttribute("hidden", !category);
  bar.querySelector("[data-do=others]")?.toggleAttribute("hidden", !onOthers);
  bar.querySelector("[data-do=similar]").toggleAttribute("hidden", !onSimilar);
  describeKey(["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"], "Go from image to image; with Shift, select");
  describeKey(" ", "Select the image");
  describeKey("Enter", "Open the image at full size; ← → next and previous, + − zoom, Shift + arrows move it");
  describeKey("Ctrl+A", "Select all images");
  if (!state.isReadOnly) {
    onKey("v", "Move the selected images to a category", actions.move);
    onKey("y", "The selected images are right", actions.confirm);
    if (category) onKey("x", "The selected images are not in this category", actions.reject);
    if (onOthers) onKey("X", "Approve the category without the selected images, which are wrong", actions.others);
    onKey(["Delete", "Backspace"], "The selected images are junk", actions.junk);
  }
  if (onSimilar) onKey("l", "Show images similar to the selection first", actions.similar);
  onKey("Escape", "Clear the selection", actions.clear);
  onKey("i", "Go to the images", () => grid.element.focus());
  show();
  return { moveTo };
}
