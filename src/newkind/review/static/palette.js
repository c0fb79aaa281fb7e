// Choice of a category by typing a part of its name.

import { breakable, get, make, plural, thumbnail } from "./api.js";
import { openDialog } from "./keys.js";

const MOST = 60;

// Resolves to {id, name, isNew}: an existing category, or with `canCreate` a new one of the typed name; null if cancelled.
// The dialog opens before the categories are loaded, so that it gets every key that is typed.
// Categories that are similar to `near` come first; it is not offered itself.
export async function chooseCategory(title, { near = "", canCreate = false } = {}) {
  const field = make("input", {
    type: "text", placeholder: "Name of a category", autocomplete: "off", spellcheck: false, role: "combobox",
    ariaExpanded: "true", ariaLabel: title,
  });
  field.setAttribute("aria-controls", "choices");
  const list = make("ul", { id: "choices", role: "listbox", ariaLabel: "Categories" });
  const dialog = openDialog("palette", title, make("h2", { textContent: title }), field, list);
  field.focus();
  return connectPalette(dialog, field, list, loadCategories(dialog, near), { near, canCreate });
}

// Categories from the server; without an answer the dialog closes and the error is told by the caller.
async function loadCategories(dialog, near) {
  try {
    return (await get("/api/categories", { near })).categories;
  } catch (error) {
    dialog.close();
    throw error;
  }
}

async function connectPalette(dialog, field, list, loading, { near, canCreate }) {
  let categories = null;
  let shown = [];
  let active = 0;
  let isEntered = false; // Enter was pressed before the categories were there
  let result = null;
  const closed = new Promise((resolve) => dialog.addEventListener("close", resolve));
  const finish = (chosen) => {
    result = chosen;
    dialog.close();
  };

  function draw() {
    const text = field.value.trim().toLowerCase();
    const starts = ({ name }) => name.toLowerCase().startsWith(text);
    shown = categories.filter(({ id, name }) => id !== near && name.toLowerCase().includes(text));
    shown = shown.sort((a, b) => starts(b) - starts(a)).slice(0, MOST);
    const isTaken = categories.some(({ name }) => name.toLowerCase() === text);
    if (canCreate && text && !isTaken) shown.push({ id: "", name: field.value.trim(), isNew: true });
    active = Math.min(active, Math.max(shown.length - 1, 0));
    list.replaceChildren(...shown.map((each, i) => makeChoice(each, i, finish)));
    mark();
  }

  function mark() {
    for (const [i, item] of [...list.children].entries()) item.ariaSelected = String(i === active);
    list.children[active]?.scrollIntoView({ block: "nearest" });
    field.setAttribute("aria-activedescendant", list.children[active]?.id ?? "");
  }

  field.addEventListener("input", () => {
    active = 0;
    if (categories) draw();
  });
  field.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      active = Math.max(0, Math.min(shown.length - 1, active + (event.key === "ArrowDown" ? 1 : -1)));
      mark();
    } else if (event.key === "Enter") {
      isEntered = !categories;
      if (shown[active]) finish(shown[active]);
    } else {
      return;
    }
    event.preventDefault();
  });
  categories = await loading;
  draw();
  if (isEntered && shown[active]) finish(shown[active]);
  await closed;
  return result;
}

function makeChoice(each, i, finish) {
  const item = make("li", { role: "option", id: `choice-${i}` });
  const face = make("span", { className: "face" });
  if (each.isNew) {
    face.textContent = "+";
    item.append(face, make("b", { textContent: `New category “${each.name}”` }));
  } else {
    if (each.face >= 0) face.append(make("img", { src: thumbnail(each.face), alt: "" }));
    item.append(face, make("b", {}, ...breakable(each.name)), make("small", { textContent: plural(each.n, "image") }));
  }
  item.addEventListener("click", () => finish(each));
  return item;
}

// Asks for a text; resolves to null if cancelled. `completions` may be a promise of them.
export function askText(title, value, { completions = [], action = "Save", hint = "" } = {}) {
  const field = make("input", { type: "text", value, autocomplete: "off", spellcheck: false, ariaLabel: title, maxLength: 200 });
  const names = make("datalist", { id: "completions" });
  field.setAttribute("list", "completions");
  const form = make(
    "form", { method: "dialog" }, field, names,
    make("button", { type: "submit", className: "primary", textContent: action }),
  );
  const parts = [make("h2", { textContent: title }), form];
  if (hint) parts.push(make("p", { className: "fine", textContent: hint }));
  const dialog = openDialog("ask", title, ...parts);
  field.select();
  const fill = (all) => names.replaceChildren(...all.map((name) => make("option", { value: name })));
  Promise.resolve(completions).then(fill, () => dialog.close());
  return new Promise((resolve) => {
    let result = null;
    form.addEventListener("submit", () => (result = field.value.trim()));
    dialog.addEventListener("close", () => resolve(result));
  });
}

// Asks for a confirmation; resolves to true or false.
export function confirmAction(title, text, action) {
  const form = make(
    "form", { method: "dialog" },
    make("button", { type: "submit", className: "primary", textContent: action, autofocus: true }),
  );
  const dialog = openDialog("ask", title, make("h2", { textContent: title }), make("p", { textContent: text }), form);
  return new Promise((resolve) => {
    let result = false;
    form.addEventListener("submit", () => (result = true));
    dialog.addEventListener("close", () => resolve(result));
  });
}
