// Names of categories: asked for with completion. The name of another category stands for a merge with it.

import { get, plural } from "./api.js";
import { carryOut } from "./page.js";
import { askText, confirmAction } from "./palette.js";

// Resolves to {name, other}, where `other` is the id of another category that has this name; null if cancelled.
async function askName(title, category, value, action) {
  const loading = get("/api/categories").then(({ categories }) => categories);
  const completions = loading.then((categories) => categories.map(({ name }) => name));
  const hint = "The name of another category merges the two.";
  const name = await askText(title, value, { completions, action, hint });
  if (name === null) return null;
  const other = (await loading).find((each) => each.name === name && each.id !== category.id);
  return { name, other: other?.id ?? "" };
}

// Merge a category with the one that has the wanted name, after a confirmation.
async function mergeWith(category, { name, other }, whenMerged) {
  const text = `There is another category ${name}. Its images and those of ${category.name} become one category.`;
  if (!(await confirmAction("Merge the two?", text, "Merge"))) return;
  whenMerged(other);
  await carryOut({ kind: "merge", categories: [category.id], into: other });
}

// Give a category {id, name} another name. `whenMerged` is called with the id of the category that it is merged with.
export async function rename(category, whenMerged = () => {}) {
  const found = await askName("Rename", category, category.name, "Rename");
  if (!found || !found.name || found.name === category.name) return;
  if (found.other) await mergeWith(category, found, whenMerged);
  else await carryOut({ kind: "rename", category: category.id, name: found.name });
}

// Name a category {id, name, isNamed} and approve it, without some images, in one decision. Returns whether it was done.
export async function approveAs(category, without = [], whenMerged = () => {}) {
  const left = without.length ? ` without ${plural(without.length, "selected image")}` : "";
  const found = await askName(`Approve${left} as`, category, category.isNamed ? category.name : "", "Approve");
  if (!found) return false;
  if (found.other) {
    await mergeWith(category, found, whenMerged);
    return false;
  }
  const name = found.name && found.name !== category.name ? { name: found.name } : {};
  return approve(category.id, { ...name, without });
}

// Approve a category, without the images that do not belong to it.
export function approve(category, { without = [], ...others } = {}) {
  return carryOut({ kind: "approve", category, ...others, ...(without.length ? { without } : {}) });
}
