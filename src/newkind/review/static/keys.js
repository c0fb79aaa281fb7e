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

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (isTyping(event.target) || document.querySelector("dialog[open]")) return;
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
