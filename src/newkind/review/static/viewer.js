// One image at full size: next and previous, zoom, and what is known about it.

import { get, make } from "./api.js";
import { openDialog } from "./keys.js";

const STEP = 1.5;
const PAN = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

// Open image `index` of a grid. `grid.words` are those of the button that selects an image and of the one that unselects it; without
// `grid.toggle` there is no such button. Without images, nothing is opened.
export function openViewer(grid, index) {
  if (!grid.images.length) return;
  const words = grid.words ?? ["Select", "Unselect"];
  const image = make("img", { alt: "", draggable: false });
  const stage = make("div", { className: "stage", tabIndex: 0, ariaLabel: "Image" }, image);
  const title = make("p", { className: "file" });
  const facts = make("dl", { className: "facts" });
  const buttons = make("div", { className: "buttons" });
  const side = make("div", { className: "about" }, title, facts, buttons);
  const dialog = openDialog("viewer", "Image at full size", stage, side);
  let zoom = 1; // 1: the whole image is visible

  async function show(to) {
    index = Math.max(0, Math.min(grid.images.length - 1, to));
    grid.goTo(index);
    const { line } = grid.images[index];
    setZoom(1);
    image.src = `/full/${line}`;
    image.alt = "";
    const about = await get("/api/about", { line }).catch(() => null);
    if (!about || grid.images[index]?.line !== line) return;
    title.textContent = about.name;
    image.alt = about.name;
    facts.replaceChildren(
      ...Object.entries(about.facts).map(([name, value]) =>
        make("div", {}, make("dt", { textContent: name }), make("dd", { textContent: value })),
      ),
    );
    namePick();
    place.textContent = `${(index + 1).toLocaleString("en")} of ${grid.images.length.toLocaleString("en")}`;
  }

  function setZoom(factor, x = 0.5, y = 0.5) {
    zoom = Math.max(1, Math.min(16, factor));
    stage.classList.toggle("zoomed", zoom > 1);
    const left = (stage.scrollLeft + x * stage.clientWidth) / Math.max(stage.scrollWidth, 1);
    const top = (stage.scrollTop + y * stage.clientHeight) / Math.max(stage.scrollHeight, 1);
    image.style.width = image.style.height = zoom > 1 ? `${100 * zoom}%` : "";
    stage.scrollTo(left * stage.scrollWidth - x * stage.clientWidth, top * stage.scrollHeight - y * stage.clientHeight);
  }

  function namePick() {
    if (!grid.toggle) return;
    pick.textContent = words[Number(grid.selected.has(grid.images[index].line))];
    pick.ariaPressed = String(grid.selected.has(grid.images[index].line));
  }

  function select() {
    if (!grid.toggle) return;
    grid.toggle(index);
    namePick();
    stage.focus();
  }

  const button = (text, label, run) => {
    const made = make("button", { type: "button", textContent: text, ...(label && { ariaLabel: label }) });
    made.addEventListener("click", run);
    return made;
  };
  const pick = button(words[0], "", select);
  const place = make("span", { className: "fine" });
  buttons.append(
    button("←", "Previous image", () => show(index - 1)),
    place,
    button("→", "Next image", () => show(index + 1)),
    button("−", "Zoom out", () => setZoom(zoom / STEP)),
    button("+", "Zoom in", () => setZoom(zoom * STEP)),
    ...(grid.toggle ? [pick] : []),
  );
  dialog.addEventListener("keydown", (event) => {
    const keys = {
      ArrowLeft: () => show(index - 1), ArrowRight: () => show(index + 1), Home: () => show(0),
      End: () => show(grid.images.length - 1), "+": () => setZoom(zoom * STEP), "=": () => setZoom(zoom * STEP),
      "-": () => setZoom(zoom / STEP), 0: () => setZoom(1), " ": select,
    };
    if (event.ctrlKey || event.metaKey || (event.key === " " && event.target.closest("button"))) return;
    const pan = event.shiftKey && PAN[event.key];
    if (pan) stage.scrollBy((pan[0] * stage.clientWidth) / 4, (pan[1] * stage.clientHeight) / 4);
    else if (event.key in keys) keys[event.key]();
    else return;
    event.preventDefault();
  });
  stage.addEventListener("dblclick", () => setZoom(zoom > 1 ? 1 : 3));
  stage.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const frame = stage.getBoundingClientRect();
    const at = [(event.clientX - frame.left) / frame.width, (event.clientY - frame.top) / frame.height];
    setZoom(zoom * Math.exp(-event.deltaY / 300), ...at);
  }, { passive: false });
  dragToScroll(stage);
  dialog.addEventListener("close", () => grid.element.focus({ preventScroll: true }));
  stage.focus();
  show(index);
}

function dragToScroll(stage) {
  stage.addEventListener("pointermove", (event) => {
    if (event.buttons !== 1 || event.pointerType === "touch") return;
    stage.scrollBy(-event.movementX, -event.movementY);
  });
}
