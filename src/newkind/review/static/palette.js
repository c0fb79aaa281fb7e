// Choice of a category by typing a part of its name.

import { get, make, plural, thumbnail } from "./api.js";
import { openDialog } from "./keys.js";

const MOST = 60;

// Resolves to {id, name, isNew}: an existing category, or with `canCreate` a new one of the typed name; null if cancelled.
export async function chooseCategory(title, { except = [], canCreate = false } = {}) {
  const { categories } = await get("/api/categories");
  const choices = categories.filter(({ id }) => !except.includes(id));
  const field = make("input", {
    type: "text", placeholder: "Name of a category", autocomplete: "off", spellcheck: false, role: "combobox",
    ariaExpanded: "true", ariaLabel: title,
  });
  field.setAttribute("aria-controls", "choices");
  const list = make("ul", { id: "choices", role: "listbox", ariaLabel: "Categories" });
  const dialog = openDialog("palette", title, make("h2", { textContent: title }), field, list);
  let shown = [];
  let active = 0;

  return new Promise((resolve) => {
    let result = null;
    const finish = (chosen) => {
      result = chosen;
      dialog.close();
    };
    const draw = () => {
      const text = field.value.trim().toLowerCase();
      shown = choices.filter(({ name }) => name.toLowerCase().includes(text)).slice(0, MOST);
      shown.sort((a, b) => b.name.toLowerCase().startsWith(text) - a.name.toLowerCase().startsWith(text));
      const isTaken = categories.some(({ name }) => name.toLowerCase() === text);
      if (canCreate && text && !isTaken) shown.push({ id: "", name: field.value.trim(), isNew: true });
      active = Math.min(active, Math.max(shown.length - 1, 0));
      list.replaceChildren(...shown.map((each, i) => choice(each, i)));
      mark();
    };
    const choice = (each, i) => {
      const item = make("li", { role: "option", id: `choice-${i}` });
      if (each.isNew) item.append(make("span", { className: "face", textContent: "+" }), make("b", { textContent: `New category “${each.name}”` }));
      else {
        const face = make("span", { className: "face" });
        if (each.face >= 0) face.append(make("img", { src: thumbnail(each.face), alt: "" }));
        item.append(face, make("b", { textContent: each.name }), make("small", { textContent: plural(each.n, "image") }));
      }
      item.addEventListener("click", () => finish(each));
      return item;
    };
    const mark = () => {
      for (const [i, item] of [...list.children].entries()) item.ariaSelected = String(i === active);
      list.children[active]?.scrollIntoView({ block: "nearest" });
      field.setAttribute("aria-activedescendant", list.children[active]?.id ?? "");
    };
    field.addEventListener("input", () => {
      active = 0;
      draw();
    });
    field.addEventListener("keydown", (event) => {
      if (event.key === "ArrowDown" || event.key === "ArrowUp") {
        active = Math.max(0, Math.min(shown.length - 1, active + (event.key === "ArrowDown" ? 1 : -1)));
        mark();
      } else if (event.key === "Enter" && shown[active]) {
        finish(shown[active]);
      } else {
        return;
      }
      event.preventDefault();
    });
    dialog.addEventListener("close", () => resolve(result));
    draw();
    field.focus();
  });
}

// Asks for a text, with completions; resolves to null if cancelled.
export function askText(title, value, { completions = [], action = "Save", hint = "" } = {}) {
  const field = make("input", { type: "text", value, autocomplete: "off", spellcheck: false, ariaLabel: title, maxLength: 200 });
  const names = make("datalist", { id: "completions" }, ...completions.map((name) => make("option", { value: name })));
  field.setAttribute("list", "completions");
  const form = make(
    "form", { method: "dialog" }, field, names,
    make("button", { type: "submit", className: "primary", textContent: action }),
  );
  const parts = [make("h2", { textContent: title }), form];
  if (hint) parts.push(make("p", { className: "fine", textContent: hint }));
  const dialog = openDialog("ask", title, ...parts);
  field.select();
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
