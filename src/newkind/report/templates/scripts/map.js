// The map of all images: drawing, pointing, moving and zooming.

const REACH = 14; // pixels around a mouse pointer in which a point is found
const TOUCH_REACH = 26;

function sizeCanvas(canvas) {
  canvas.width = map.width * map.ratio;
  canvas.height = map.height * map.ratio;
}

function cursorAt(i) {
  if (i >= 0) return "pointer";
  return map.scale > 1 ? "grab" : "crosshair";
}

// A function that calls `draw` before the next frame, however often it is called until then.
function oncePerFrame(draw) {
  let isWaiting = false;
  return () => {
    if (isWaiting) return;
    isWaiting = true;
    requestAnimationFrame(() => {
      isWaiting = false;
      draw();
    });
  };
}

function startMap() {
  const canvas = map.frame.querySelector(".points");
  const marks = map.frame.querySelector(".marks");
  const box = map.frame.querySelector(".hover");
  const labels = makeLabels(map.frame.querySelector(".labels"));

  function draw() {
    drawPoints(canvas);
    placeLabels(labels);
    highlightCategory(marks, map.selected);
  }

  const drawSoon = oncePerFrame(draw);

  // isHeld: the box stays, and its link can be tapped.
  function select(i, isHeld) {
    if (i === map.selected && box.classList.contains("held") === isHeld) return;
    map.selected = i;
    box.classList.toggle("held", isHeld);
    highlightCategory(marks, i);
    showHoverBox(box, i);
    canvas.style.cursor = cursorAt(i);
  }

  function resize() {
    if (!map.frame.clientWidth || !map.frame.clientHeight) return;
    fitView();
    for (const each of [canvas, marks]) sizeCanvas(each);
    select(-1, false);
    drawSoon();
  }

  function zoom(factor, x, y) {
    zoomView(factor, x, y);
    canvas.style.touchAction = map.scale > 1 ? "none" : "pan-y";
    select(-1, false);
    drawSoon();
  }

  function pan(x, y) {
    map.x += x;
    map.y += y;
    select(-1, false);
    drawSoon();
  }

  connectPointers(canvas, { select, zoom, pan, isHeld: () => box.classList.contains("held") });
  connectTools({ zoom, drawSoon });
  connectPrinting(() => select(-1, false), draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawSoon);
  new ResizeObserver(resize).observe(map.frame);
  resize();
  canvas.locate = (i) => [screenX(i), screenY(i)]; // for tests: where point i is
}

// One pointer points or moves the map, two zoom it.
function connectPointers(canvas, actions) {
  const down = new Map(); // pointer -> its last place
  let travelled = 0;

  function placeOf(event) {
    const frame = canvas.getBoundingClientRect();
    return { x: event.clientX - frame.left, y: event.clientY - frame.top };
  }

  function drag(event, now, before) {
    travelled += Math.abs(now.x - before.x) + Math.abs(now.y - before.y);
    if (down.size === 2) {
      const other = [...down].find(([id]) => id !== event.pointerId)[1];
      const distance = (a) => Math.hypot(a.x - other.x, a.y - other.y) || 1;
      actions.zoom(distance(now) / distance(before), (now.x + other.x) / 2, (now.y + other.y) / 2);
    } else if (map.scale > 1 && travelled > 4) {
      actions.pan(now.x - before.x, now.y - before.y);
    }
    down.set(event.pointerId, now);
  }

  canvas.addEventListener("pointerdown", (event) => {
    down.set(event.pointerId, placeOf(event));
    travelled = 0;
    if (map.scale > 1 || down.size > 1) canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    const now = placeOf(event);
    const before = down.get(event.pointerId);
    if (before) drag(event, now, before);
    else if (event.pointerType !== "touch") actions.select(nearestPoint(now.x, now.y, REACH), false);
  });
  for (const name of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(name, (event) => down.delete(event.pointerId));
  }
  canvas.addEventListener("pointerleave", (event) => {
    down.delete(event.pointerId);
    if (!actions.isHeld()) actions.select(-1, false);
  });
  canvas.addEventListener("click", (event) => {
    if (travelled > 6) return;
    const now = placeOf(event);
    const isTouch = event.pointerType === "touch";
    const i = nearestPoint(now.x, now.y, isTouch ? TOUCH_REACH : REACH);
    if (isTouch || i < 0) actions.select(i, isTouch && i >= 0);
    else location.hash = data.categories[category[i]].anchor;
  });
  connectWheel(canvas, placeOf, actions.zoom);
}

function connectWheel(canvas, placeOf, zoom) {
  const onWheel = (event) => {
    if (!event.ctrlKey && !event.metaKey) return; // the page scrolls
    event.preventDefault();
    const { x, y } = placeOf(event);
    zoom(Math.exp(-event.deltaY / 300), x, y);
  };
  canvas.addEventListener("wheel", onWheel, { passive: false });
  canvas.addEventListener("dblclick", (event) => {
    const { x, y } = placeOf(event);
    zoom(2, x, y);
  });
}

function connectTools({ zoom, drawSoon }) {
  const factors = { in: 1.6, out: 1 / 1.6, all: 0 };
  for (const button of document.querySelectorAll("[data-zoom]")) {
    button.addEventListener("click", () => zoom(factors[button.dataset.zoom], map.width / 2, map.height / 2));
  }
  const colours = [...document.querySelectorAll("[data-colour]")];
  for (const button of colours) {
    button.addEventListener("click", () => {
      map.colour = button.dataset.colour;
      for (const each of colours) each.setAttribute("aria-pressed", String(each === button));
      drawSoon();
    });
  }
  for (const field of document.querySelectorAll("[data-status]")) {
    field.addEventListener("change", () => {
      map.shown[Number(field.dataset.status)] = field.checked;
      drawSoon();
    });
  }
  document.querySelector("[data-labels]").addEventListener("change", (event) => {
    map.withLabels = event.target.checked;
    drawSoon();
  });
}

function connectPrinting(clear, draw) {
  window.addEventListener("beforeprint", () => {
    isPrinting = true;
    clear();
    draw();
  });
  window.addEventListener("afterprint", () => {
    isPrinting = false;
    draw();
  });
}

if (map.frame) {
  sortByCell();
  startMap();
}
