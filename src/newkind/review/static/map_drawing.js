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
  pen.globalAlpha = 0.75;
  for (const [colour, indices] of groups) {
    pen.fillStyle = typeof colour === "string" ? cssColour(colour) : categoryColour(colour);
    dots(pen, indices, side, screenX, screenY);
  }
  if (!selected.size) return;
  pen.globalAlpha = 1;
  pen.fillStyle = cssColour("--ink");
  const chosen = [...data.lines.keys()].filter((i) => selected.has(data.lines[i]));
  dots(pen, chosen, side + 2, screenX, screenY);
}

// Circles; squares if they are so small that nobody sees the difference.
function dots(pen, indices, side, screenX, screenY) {
  if (side < 4) {
    for (const i of indices) pen.fillRect(screenX(i) - side / 2, screenY(i) - side / 2, side, side);
    return;
  }
  pen.beginPath();
  for (const i of indices) {
    pen.moveTo(screenX(i) + side / 2, screenY(i));
    pen.arc(screenX(i), screenY(i), side / 2, 0, 2 * Math.PI);
  }
  pen.fill();
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
