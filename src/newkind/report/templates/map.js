// The map: points on one canvas, drawn again only when the view changes; what the pointer is at, on another above it.
(function () {
  "use strict";
  const source = document.getElementById("map-data");
  if (!source) return;
  const data = JSON.parse(source.textContent);
  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer;
  const points = new Uint16Array(bytes(data.points));
  const lines = new Int32Array(bytes(data.lines));
  const category = data.wide ? new Uint32Array(bytes(data.category)) : new Uint16Array(bytes(data.category));
  const status = new Uint8Array(bytes(data.status));
  const sure = new Uint8Array(bytes(data.sure));
  const slots = new Int32Array(bytes(data.slots));
  const frame = document.querySelector(".atlas");
  const canvas = frame.querySelector(".points");
  const marks = frame.querySelector(".marks");
  const box = frame.querySelector(".hover");
  const view = { scale: 1, x: 0, y: 0 };
  const shown = [true, true, true];
  let mode = "kind";
  let withNames = true;
  let width = 0, height = 0, ratio = 1, wide = 0, high = 0, left = 0, top = 0;
  let at = -1;

  const sheets = new Map();
  function sheet(number) {
    if (!sheets.has(number)) {
      const image = new Image();
      image.addEventListener("load", () => tell(at));
      image.src = data.sheets[number];
      sheets.set(number, image);
    }
    return sheets.get(number);
  }

  // Points by category, and where the middle of each category lies.
  const count = data.categories.length;
  const starts = new Uint32Array(count + 1);
  for (let i = 0; i < data.n; i++) starts[category[i] + 1]++;
  for (let k = 0; k < count; k++) starts[k + 1] += starts[k];
  const members = new Uint32Array(data.n);
  const fill = starts.slice();
  for (let i = 0; i < data.n; i++) members[fill[category[i]]++] = i;
  const middles = [];
  for (let k = 0; k < count; k++) {
    const own = members.subarray(starts[k], starts[k + 1]);
    if (!own.length) continue;
    const xs = Array.from(own, (i) => points[2 * i]).sort((a, b) => a - b);
    const ys = Array.from(own, (i) => points[2 * i + 1]).sort((a, b) => a - b);
    // The member nearest to the medians: a name never stands where none of its category lies.
    const x = xs[xs.length >> 1], y = ys[ys.length >> 1];
    const far = (i) => (points[2 * i] - x) ** 2 + (points[2 * i + 1] - y) ** 2;
    const best = own.reduce((a, b) => (far(b) < far(a) ? b : a));
    middles.push({ k: k, x: points[2 * best], y: points[2 * best + 1], n: own.length });
  }
  middles.sort((a, b) => b.n - a.n);

  // A grid over the map, so that the nearest point is found without looking at all of them.
  const CELLS = 128;
  const cellOf = (i) => (points[2 * i] >> 9) + CELLS * (points[2 * i + 1] >> 9);
  const first = new Uint32Array(CELLS * CELLS + 1);
  for (let i = 0; i < data.n; i++) first[cellOf(i) + 1]++;
  for (let c = 0; c < CELLS * CELLS; c++) first[c + 1] += first[c];
  const inCell = new Uint32Array(data.n);
  const next = first.slice();
  for (let i = 0; i < data.n; i++) inCell[next[cellOf(i)]++] = i;

  const screenX = (i) => left + view.x + (points[2 * i] / 65535) * wide * view.scale;
  const screenY = (i) => top + view.y + (1 - points[2 * i + 1] / 65535) * high * view.scale;

  function nearest(x, y, reach) {
    const across = (wide * view.scale) / CELLS, down = (high * view.scale) / CELLS;
    const column = (x - left - view.x) / across, columns = reach / across;
    const row = CELLS - (y - top - view.y) / down, rows = reach / down;
    let best = -1, least = reach * reach;
    for (let r = Math.max(0, Math.floor(row - rows)); r <= Math.min(CELLS - 1, row + rows); r++) {
      for (let c = Math.max(0, Math.floor(column - columns)); c <= Math.min(CELLS - 1, column + columns); c++) {
        for (let j = first[c + CELLS * r]; j < first[c + CELLS * r + 1]; j++) {
          const i = inCell[j];
          if (!shown[status[i]]) continue;
          const dx = screenX(i) - x, dy = screenY(i) - y;
          if (dx * dx + dy * dy < least) { least = dx * dx + dy * dy; best = i; }
        }
      }
    }
    return best;
  }

  // Paper is white, whatever the screen is.
  const PAPER = { "--card": "#ffffff", "--ink": "#1d2127", "--labelled": "#8b95a1", "--known": "#1c64bd", "--new": "#cf4a0c" };
  let printing = false;
  const colour = (name) => printing ? PAPER[name] : getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const isDark = () => !printing && matchMedia("(prefers-color-scheme: dark)").matches;
  function rgbOf(hex) {
    const value = parseInt(hex.slice(1), 16);
    return [value >> 16, (value >> 8) & 255, value & 255];
  }
  // Hues that lie far apart for categories that follow each other.
  function hueOf(k) {
    const hue = (k * 137.508) / 30, light = isDark() ? 0.66 : 0.44;
    const reach = (k % 2 ? 0.62 : 0.75) * Math.min(light, 1 - light);
    return [0, 8, 4].map(function (n) {
      const part = (n + hue) % 12;
      return Math.round(255 * (light - reach * Math.max(-1, Math.min(part - 3, 9 - part, 1))));
    });
  }
  const radius = () => Math.max(1.2, Math.min(4.5, 130 / Math.sqrt(data.n + 400))) * Math.min(2, Math.sqrt(view.scale));

  // Around a dot's middle: which bytes of the picture it covers, and how much of each.
  function stampOf(r, across) {
    const reach = Math.ceil(r + 0.5), places = [], shares = [];
    for (let y = -reach; y <= reach; y++) {
      for (let x = -reach; x <= reach; x++) {
        const share = Math.max(0, Math.min(1, r + 0.5 - Math.hypot(x, y)));
        if (share > 0) { places.push(4 * (y * across + x)); shares.push(share * (data.n > 20000 ? 0.6 : 0.78)); }
      }
    }
    return { reach: reach, places: Int32Array.from(places), shares: Float32Array.from(shares) };
  }

  // Straight into the pixels: 50,000 dots take a few milliseconds.
  let picture = null;
  function draw() {
    const pen = canvas.getContext("2d");
    if (!picture || picture.width !== canvas.width || picture.height !== canvas.height) {
      picture = pen.createImageData(canvas.width, canvas.height);
    }
    const ground = rgbOf(colour("--card"));
    new Uint32Array(picture.data.buffer).fill((255 << 24) | (ground[2] << 16) | (ground[1] << 8) | ground[0]);
    const stamp = stampOf(radius() * ratio, canvas.width);
    const kinds = ["--labelled", "--known", "--new"].map((name) => rgbOf(colour(name)));
    const hues = mode === "kind" ? null : data.categories.map((_, k) => hueOf(k));
    for (let s = 0; s < 3; s++) {
      if (!shown[s]) continue;
      for (let i = 0; i < data.n; i++) {
        if (status[i] === s) dot(stamp, Math.round(screenX(i) * ratio), Math.round(screenY(i) * ratio), hues ? hues[category[i]] : kinds[s]);
      }
    }
    pen.putImageData(picture, 0, 0);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    if (withNames) write(pen);
  }

  function dot(stamp, x, y, rgb) {
    const across = picture.width, pixels = picture.data, reach = stamp.reach;
    if (x < reach || y < reach || x >= across - reach || y >= picture.height - reach) return;
    const middle = 4 * (y * across + x), red = rgb[0], green = rgb[1], blue = rgb[2];
    for (let j = 0; j < stamp.places.length; j++) {
      const at = middle + stamp.places[j], share = stamp.shares[j];
      pixels[at] += (red - pixels[at]) * share;
      pixels[at + 1] += (green - pixels[at + 1]) * share;
      pixels[at + 2] += (blue - pixels[at + 2]) * share;
    }
  }

  // Names of categories in their middles, the largest first, as far as they do not cover each other.
  function write(pen) {
    pen.font = "600 12px system-ui, sans-serif";
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.lineWidth = 4;
    pen.lineJoin = "round";
    const taken = [], most = Math.max(10, Math.min(40, (width * height) / 16000));
    const ground = colour("--card"), ink = colour("--ink");
    for (const middle of middles) {
      if (taken.length >= most * view.scale * view.scale) break; // more of them from nearer
      const info = data.categories[middle.k];
      if (!(info.new ? shown[2] : shown[1] || shown[0])) continue;
      const text = info.name.length > 24 ? info.name.slice(0, 23) + "…" : info.name;
      const x = left + view.x + (middle.x / 65535) * wide * view.scale;
      const y = top + view.y + (1 - middle.y / 65535) * high * view.scale;
      const half = pen.measureText(text).width / 2 + 4;
      if (x < half || x > width - half || y < 10 || y > height - 10) continue;
      if (taken.some((t) => Math.abs(t.x - x) < t.half + half && Math.abs(t.y - y) < 17)) continue;
      taken.push({ x: x, y: y, half: half });
      pen.strokeStyle = ground;
      pen.strokeText(text, x, y);
      pen.fillStyle = ink;
      pen.fillText(text, x, y);
    }
  }

  function mark(i) {
    const pen = marks.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    if (i < 0) return;
    const k = category[i], r = radius() + 0.8;
    pen.fillStyle = mode === "kind" ? colour(data.categories[k].new ? "--new" : "--known") : "rgb(" + hueOf(k).join(" ") + ")";
    pen.beginPath();
    for (const j of members.subarray(starts[k], starts[k + 1])) {
      if (!shown[status[j]]) continue;
      pen.moveTo(screenX(j) + r, screenY(j));
      pen.arc(screenX(j), screenY(j), r, 0, 6.2832);
    }
    pen.fill();
    pen.beginPath();
    pen.arc(screenX(i), screenY(i), r + 4, 0, 6.2832);
    pen.strokeStyle = colour("--ink");
    pen.lineWidth = 2;
    pen.stroke();
  }

  function tell(i) {
    box.hidden = i < 0;
    if (i < 0) return;
    const info = data.categories[category[i]];
    const picture = window.newkindPictures.get(String(lines[i]));
    const image = box.querySelector("img"), small = box.querySelector("canvas");
    image.hidden = !picture;
    if (picture) image.src = picture;
    small.hidden = Boolean(picture) || slots[i] < 0;
    if (!small.hidden) {
      const per = data.columns * data.columns, place = slots[i] % per, from = sheet(Math.floor(slots[i] / per));
      const pen = small.getContext("2d");
      pen.imageSmoothingQuality = "high";
      pen.clearRect(0, 0, 192, 192);
      if (from.complete && from.naturalWidth) {
        pen.drawImage(from, (place % data.columns) * data.side, Math.floor(place / data.columns) * data.side, data.side, data.side, 0, 0, 192, 192);
      }
    }
    box.querySelector(".file").textContent = data.prefix + data.names[i];
    box.querySelector(".text").textContent = info.name + (status[i] === 0 ? ", labelled" : ", " + sure[i] + " % sure");
    const link = box.querySelector("a");
    link.textContent = "To the category";
    link.setAttribute("href", "#" + info.anchor);
    const x = screenX(i), y = screenY(i);
    const own = box.offsetWidth;
    box.style.left = Math.max(6, Math.min(width - own - 6, x > width - own - 24 ? x - own - 14 : x + 14)) + "px";
    box.style.top = Math.max(6, Math.min(height - box.offsetHeight - 6, y - 40)) + "px";
  }

  function point(i, held) {
    if (i === at && box.classList.contains("held") === held) return;
    at = i;
    box.classList.toggle("held", held);
    mark(i);
    tell(i);
    canvas.style.cursor = i < 0 ? (view.scale > 1 ? "grab" : "crosshair") : "pointer";
  }

  let waiting = false;
  function later() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(function () { waiting = false; draw(); mark(at); });
  }

  function fit() {
    ratio = Math.min(window.devicePixelRatio || 1, 2);
    width = frame.clientWidth;
    height = frame.clientHeight;
    if (!width || !height) return;
    for (const each of [canvas, marks]) { each.width = width * ratio; each.height = height * ratio; }
    const short = Math.min(width, height) - 36;
    wide = Math.min(width - 36, 1.6 * short);
    high = Math.min(height - 36, 1.6 * short);
    left = (width - wide) / 2;
    top = (height - high) / 2;
    point(-1, false);
    later();
  }

  function zoom(factor, x, y) {
    const scale = Math.max(1, Math.min(40, view.scale * factor));
    const change = scale / view.scale;
    view.x = x - left - (x - left - view.x) * change;
    view.y = y - top - (y - top - view.y) * change;
    view.scale = scale;
    if (scale === 1) { view.x = 0; view.y = 0; }
    canvas.style.touchAction = scale > 1 ? "none" : "pan-y";
    point(-1, false);
    later();
  }

  // One pointer points or moves the map, two zoom it.
  const down = new Map();
  let travelled = 0;
  const where = (event) => { const r = canvas.getBoundingClientRect(); return { x: event.clientX - r.left, y: event.clientY - r.top }; };
  canvas.addEventListener("pointerdown", function (event) {
    down.set(event.pointerId, where(event));
    travelled = 0;
    if (view.scale > 1 || down.size > 1) canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", function (event) {
    const now = where(event), before = down.get(event.pointerId);
    if (!before) {
      if (event.pointerType !== "touch") point(nearest(now.x, now.y, 14), false);
      return;
    }
    travelled += Math.abs(now.x - before.x) + Math.abs(now.y - before.y);
    if (down.size === 2) {
      const other = [...down].find(([id]) => id !== event.pointerId)[1];
      const length = (a) => Math.hypot(a.x - other.x, a.y - other.y) || 1;
      zoom(length(now) / length(before), (now.x + other.x) / 2, (now.y + other.y) / 2);
    } else if (view.scale > 1 && travelled > 4) {
      view.x += now.x - before.x;
      view.y += now.y - before.y;
      point(-1, false);
      later();
    }
    down.set(event.pointerId, now);
  });
  for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => down.delete(event.pointerId));
  canvas.addEventListener("pointerleave", function (event) {
    down.delete(event.pointerId);
    if (!box.classList.contains("held")) point(-1, false);
  });
  canvas.addEventListener("click", function (event) {
    if (travelled > 6) return;
    const now = where(event), touch = event.pointerType === "touch";
    const i = nearest(now.x, now.y, touch ? 26 : 14);
    if (touch || i < 0) point(i, touch && i >= 0);
    else location.hash = data.categories[category[i]].anchor;
  });
  canvas.addEventListener("wheel", function (event) {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const now = where(event);
    zoom(Math.exp(-event.deltaY / 300), now.x, now.y);
  }, { passive: false });
  canvas.addEventListener("dblclick", (event) => { const now = where(event); zoom(2, now.x, now.y); });

  for (const button of document.querySelectorAll("[data-zoom]")) {
    button.addEventListener("click", function () {
      zoom({ in: 1.6, out: 1 / 1.6, all: 0 }[button.dataset.zoom], width / 2, height / 2);
    });
  }
  for (const button of document.querySelectorAll("[data-colour]")) {
    button.addEventListener("click", function () {
      mode = button.dataset.colour;
      for (const each of document.querySelectorAll("[data-colour]")) each.setAttribute("aria-pressed", String(each === button));
      later();
    });
  }
  for (const field of document.querySelectorAll("[data-status]")) {
    field.addEventListener("change", function () { shown[Number(field.dataset.status)] = field.checked; later(); });
  }
  document.querySelector("[data-names]").addEventListener("change", function (event) { withNames = event.target.checked; later(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", later);
  window.addEventListener("beforeprint", function () { printing = true; point(-1, false); draw(); });
  window.addEventListener("afterprint", function () { printing = false; later(); });
  new ResizeObserver(fit).observe(frame);
  fit();
  canvas.locate = (i) => [screenX(i), screenY(i)]; // where point i is, for whoever wants to point at it
  canvas.redraw = function () { const start = performance.now(); draw(); return performance.now() - start; };
})();
