// Order and filters of a list of images, kept in the address of the page.

import { get, newest, plural } from "./api.js";
import { unpack } from "./grid.js";
import { attempt } from "./page.js";

export class Filters {
  constructor(grid, fixed) {
    this.grid = grid;
    this.fixed = fixed; // parameters that do not change
    this.near = [];
    this.ask = newest(() => get("/api/lines", this.values));
    this.fields = [...document.querySelectorAll(".filters [data-field]")];
    const given = new URLSearchParams(location.search);
    for (const field of this.fields) {
      if (given.has(field.dataset.field)) field.value = given.get(field.dataset.field);
      field.addEventListener(field.tagName === "INPUT" ? "input" : "change", () => this.changeSoon(field));
    }
  }

  get values() {
    const found = { ...this.fixed };
    for (const { dataset, value } of this.fields) {
      if (dataset.field === "where" && value) [found.column, found.value] = JSON.parse(value);
      else if (dataset.field !== "where") found[dataset.field] = value;
    }
    if (found.order === "similar") found.near = this.near.slice(0, 100).join(",");
    return found;
  }

  changeSoon(field) {
    if (field.dataset.field === "order" && field.value === "similar") this.near = this.grid.chosen;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.load(), field.tagName === "INPUT" ? 200 : 0);
  }

  showSimilar(lines) {
    this.near = lines;
    this.fields.find(({ dataset }) => dataset.field === "order").value = "similar";
    this.load();
    window.scrollTo(0, 0);
  }

  async load({ keepPlace = false } = {}) {
    await attempt(async () => {
      const found = await this.ask();
      if (!found) return;
      this.grid.show(unpack(found), { keepPlace });
      document.querySelector("[data-total]").textContent = found.lines.length ? plural(found.lines.length, "image") : "No image matches.";
    });
  }
}
