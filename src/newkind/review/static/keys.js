// Keyboard shortcuts, and the overlay that lists them.

import { make } from "./api.js";

const actions = [];
const names = { " ": "Space", ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", Escape: "Esc" };

// Call `run` for a key, unless the user types a text or a dialog is open. `key` is a value of KeyboardEvent.key, or several.
// Keys that every page has are listed last.
export function onKey(key, text, run, { isEverywhere = false } = {}) {
  actions.push({ keys: [].concat(key), text, run, isEverywhere });
}

// A key that is handled elsewhere, for the overlay only.
export function describeKey(key, text) {
  actions.push({ keys: [].concat(key), text, run: null, isEverywhere: false });
}

const isTyping = (target) => target.closest("input:not([type=checkbox], [type=radio]), textarea, select") !== null;

// Enter and Space press the link or button that has the focus, whatever they do elsewhere; images to mark are no such buttons.
const isPress = ({ key, target }) => (key === "Enter" || key === " ") && target.closest("a, summary, button:not(.candidates button)") !== null;

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (document.querySelector("dialog[open]") || isPress(event)) return;
  if (isTyping(event.target)) {
    if (event.key === "Escape") event.target.blur(); // letters are shortcuts again
    return;
  }
  const found = actions.find(({ keys, run }) => run && keys.includes(event.key));
  if (!found) return;
  event.preventDefault();
  found.run(event);
});

// A dialog that closes by Escape, by its button and by a click outside, and is removed then.
export function openDialog(className, label, ...children) {
  const close = make("button", { type: "button", className: "close", ariaLabel: "Close", textContent: "×" });
  const dialog = make("dialog", { className, ariaLabel: label }, close, ...children);
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

export function showHelp() {
  const list = make("dl", { className: "keys" });
  for (const { keys, text } of [...actions].sort((a, b) => a.isEverywhere - b.isEverywhere)) {
    const shown = keys.flatMap((key, i) => [...(i ? [" "] : []), make("kbd", { textContent: names[key] || key })]);
    list.append(make("div", {}, make("dt", {}, ...shown), make("dd", { textContent: text })));
  }
  openDialog("help", "Keyboard shortcuts", make("h2", { textContent: "Keyboard shortcuts" }), list);
}
