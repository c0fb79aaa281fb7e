// Drawing of the map's points and of the lasso.

const KINDS = ["--labelled", "--known", "--new"];

const cssColour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Hues that are far apart for consecutive numbers.
function categoryColour(k) {
  const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
  return `hsl(${(k * 137.508) % 360} ${k % 2 ? 62 : 75}% ${isDark ? 66 : 44}%)`;
}

export function drawMap(canvas, data, view, { screenX, screenY, selected }) {
  const pen = canvas.getContext("2d");
  pen.setTransform(view.ratio, 0, 0, view.ratio, 0, 0);
  pen.clearRect(0, 0, view.width, view.height);
  const n = data.lines.length;
  const side = 2 * Math.max(1.2, Math.min(4, 110 / Math.sqrt(n + 400))) * Math.min(2, Math.sqrt(view.scale));
  const groups = new Map(); // colour -> indices: setting the colour is what takes time
  for (let i = 0; i < n; i++) {
    const colour = view.colour === "kind" ? KINDS[data.kind[i]] : data.category[i];
    if (!groups.has(colour)) groups.set(colour, []);
    groups.get(colour).push(i);
  }
  const dot = (i, size) => pen.fillRect(screenX(i) - size / 2, screenY(i) - size / 2, size, size);
  pen.globalAlpha = 0.75;
  for (const [colour, indices] of groups) {
    pen.fillStyle = typeof colour === "string" ? cssColour(colour) : categoryColour(colour);
    for (const i of indices) dot(i, side);
  }
  if (!selected.size) return;
  pen.globalAlpha = 1;
  pen.fillStyle = cssColour("--ink");
  for (let i = 0; i < n; i++) if (selected.has(data.lines[i])) dot(i, side + 2);
}

export function drawOutline(canvas, line, view) {
  const pen = canvas.getContext("2d");
  pen.setTransform(view.ratio, 0, 0, view.ratio, 0, 0);
  pen.clearRect(0, 0, view.width, view.height);
  if (line.length < 2) return;
  pen.beginPath();
  for (const [x, y] of line) pen.lineTo(x, y);
  pen.closePath();
  pen.strokeStyle = pen.fillStyle = cssColour("--known");
  pen.lineWidth = 2;
  pen.stroke();
  pen.globalAlpha = 0.12;
  pen.fill();
  pen.globalAlpha = 1;
}
