// Drawing of the map's points and of the lasso.

const LONGEST = 24; // characters of a name
const KINDS = ["--labelled", "--known", "--new"];

const cssColour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Hues that are far apart for consecutive numbers.
function categoryColour(k) {
  const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
  return `hsl(${(k * 137.508) % 360} ${k % 2 ? 62 : 75}% ${isDark ? 66 : 44}%)`;
}

// Median position of each category that has points, the largest category first.
export function centresOf({ points, category, categories }) {
  const members = categories.map(() => []);
  for (const [i, k] of category.entries()) members[k]?.push(i);
  const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];
  const order = [...members.keys()].filter((k) => members[k].length).sort((a, b) => members[b].length - members[a].length);
  return order.map((k) => ({
    name: categories[k], x: median(members[k].map((i) => points[2 * i])), y: median(members[k].map((i) => points[2 * i + 1])),
  }));
}

export function drawMap(canvas, data, view, { screenX, screenY, toX, toY, selected }) {
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
  pen.globalAlpha = 1;
  pen.fillStyle = cssColour("--ink");
  if (selected.size) {
    const chosen = [...data.lines.keys()].filter((i) => selected.has(data.lines[i]));
    dots(pen, chosen, side + 2, screenX, screenY);
  }
  names(pen, data.centres, view, toX, toY);
}

// Names of the categories, the largest first; one that would cover another is left out until the map is larger.
function names(pen, centres, view, toX, toY) {
  pen.font = "600 12px system-ui, sans-serif";
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.lineJoin = "round";
  pen.lineWidth = 4;
  pen.strokeStyle = cssColour("--card");
  const taken = [];
  for (const { name, x, y } of centres) {
    const text = name.length > LONGEST ? `${name.slice(0, LONGEST - 1)}…` : name;
    const half = pen.measureText(text).width / 2 + 4;
    const at = [Math.max(half, Math.min(view.width - half, toX(x))), toY(y)];
    const isNear = ([a, b, other]) => Math.abs(a - at[0]) < half + other && Math.abs(b - at[1]) < 18;
    const isOutside = toX(x) < 0 || toX(x) > view.width || at[1] < 8 || at[1] > view.height - 8;
    if (isOutside || taken.some(isNear)) continue;
    taken.push([...at, half]);
    pen.strokeText(text, ...at);
    pen.fillText(text, ...at);
  }
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
