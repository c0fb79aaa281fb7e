// Drawing the map's points. They are written directly into pixels: 50,000 dots take a few milliseconds.

const KIND_COLOURS = ["--labelled", "--known", "--new"]; // by status
// Paper is white, also if the screen is dark.
const PAPER = { "--card": "#ffffff", "--ink": "#1d2127", "--labelled": "#77818d", "--known": "#1c64bd", "--new": "#c2410c" };
let isPrinting = false;
let pixels = null;

function cssColour(name) {
  return isPrinting ? PAPER[name] : getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function rgbOf(hex) {
  const value = parseInt(hex.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

// Colour of category k: hues that are far apart for consecutive numbers.
function categoryColour(k) {
  const isDark = !isPrinting && matchMedia("(prefers-color-scheme: dark)").matches;
  const lightness = isDark ? 0.66 : 0.44;
  const reach = (k % 2 ? 0.62 : 0.75) * Math.min(lightness, 1 - lightness);
  return [0, 8, 4].map((n) => {
    const part = (n + (k * 137.508) / 30) % 12;
    return Math.round(255 * (lightness - reach * Math.max(-1, Math.min(part - 3, 9 - part, 1))));
  });
}

// Offsets of the bytes that a dot covers, relative to its centre, and how much of each it covers.
function makeStamp(radius, pixelsPerRow) {
  const reach = Math.ceil(radius + 0.5);
  const opacity = data.n > 20000 ? 0.6 : 0.78;
  const offsets = [];
  const shares = [];
  for (let y = -reach; y <= reach; y++) {
    for (let x = -reach; x <= reach; x++) {
      const share = Math.max(0, Math.min(1, radius + 0.5 - Math.hypot(x, y)));
      if (share === 0) continue;
      offsets.push(4 * (y * pixelsPerRow + x));
      shares.push(share * opacity);
    }
  }
  return { reach, offsets: Int32Array.from(offsets), shares: Float32Array.from(shares) };
}

function drawDot(stamp, x, y, [red, green, blue]) {
  const { reach, offsets, shares } = stamp;
  if (x < reach || y < reach || x >= pixels.width - reach || y >= pixels.height - reach) return;
  const bytes = pixels.data;
  const centre = 4 * (y * pixels.width + x);
  for (let j = 0; j < offsets.length; j++) {
    const at = centre + offsets[j];
    bytes[at] += (red - bytes[at]) * shares[j];
    bytes[at + 1] += (green - bytes[at + 1]) * shares[j];
    bytes[at + 2] += (blue - bytes[at + 2]) * shares[j];
  }
}

function drawPoints(canvas) {
  const pen = canvas.getContext("2d");
  if (!pixels || pixels.width !== canvas.width || pixels.height !== canvas.height) {
    pixels = pen.createImageData(canvas.width, canvas.height);
  }
  const [red, green, blue] = rgbOf(cssColour("--card"));
  new Uint32Array(pixels.data.buffer).fill((255 << 24) | (blue << 16) | (green << 8) | red);
  const stamp = makeStamp(pointRadius() * map.ratio, canvas.width);
  const byStatus = KIND_COLOURS.map((name) => rgbOf(cssColour(name)));
  const byCategory = map.colour === "category" ? data.categories.map((_, k) => categoryColour(k)) : null;
  for (const kind of [LABELLED, KNOWN, NEW]) {
    if (!map.shown[kind]) continue;
    for (let i = 0; i < data.n; i++) {
      if (status[i] !== kind) continue;
      const colour = byCategory ? byCategory[category[i]] : byStatus[kind];
      drawDot(stamp, Math.round(screenX(i) * map.ratio), Math.round(screenY(i) * map.ratio), colour);
    }
  }
  pen.putImageData(pixels, 0, 0);
}
