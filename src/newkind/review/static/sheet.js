// A sheet: the undecided images of several named categories that have few of them. One decision approves them without the marked ones.

import { breakable, decide, get, make, newest, plural, refreshParts, state, thumbnail } from "./api.js";
import { onKey } from "./keys.js";
import { Marking } from "./marking.js";
import { attempt, setUpPage, startPage, tell } from "./page.js";

const next = document.getElementById("next");
const marking = new Marking(document.getElementById("candidates"), { onChange: label, text: "The image does not belong to its category" });
const ask = newest(() => get("/api/sheet"));

async function load() {
  await attempt(async () => {
    const found = await ask();
    if (!found) return;
    marking.show(found.groups.map((group) => ({ lines: group.lines, label: `Images in ${group.name}`, head: [headOf(group)] })));
    const n = found.groups.reduce((sum, { lines }) => sum + lines.length, 0);
    document.getElementById("left").textContent = found.n > n ? `${plural(found.n, "image")} are left, ${n} on this sheet.` : "";
    document.getElementById("question").hidden = !found.n;
    document.getElementById("nothing").hidden = found.n > 0;
    next.hidden = !found.n || state.isReadOnly;
    label();
  });
}

function headOf({ id, name, status, examples, lines }) {
  const link = make("a", { className: `name ${status}`, href: `/category?id=${encodeURIComponent(id)}`, tabIndex: -1 }, ...breakable(name));
  const faces = examples.map((line) => make("span", { className: "face" }, make("img", { src: thumbnail(line), alt: "" })));
  return make("h3", { className: "belongs" }, ...faces, make("span", {}, link, " ", make("small", { textContent: plural(lines.length, "image") })));
}

function label() {
  const wrong = marking.marked.length;
  const right = marking.others.length;
  const text = wrong ? `Approve ${right}, reject ${wrong} ` : `Approve all ${right} `;
  next.replaceChildren(text, make("kbd", { textContent: "Enter" }));
}

async function finish() {
  if (next.disabled || next.hidden) return;
  next.disabled = true;
  const decision = { kind: "approve", lines: marking.others, without: marking.marked };
  let text = "";
  const done = await attempt(async () => ({ text } = await decide(decision)));
  if (done) {
    await load();
    await refreshParts("#progress");
    tell(text);
  }
  next.disabled = false;
}

next.addEventListener("click", finish);
if (!state.isReadOnly) onKey("Enter", "Approve the images that are not marked, and reject the others", finish);
setUpPage({ isBusy: () => marking.marked.length > 0, refresh: load });
await startPage(load);
