// The map's state, and where its points are on the screen.

const CELLS = 128; // of the grid that finds the nearest point without looking at all of them
const MARGIN = 36;

const map = {
  frame: document.querySelector(".map"),
  colour: "kind", // or "category"
  shown: [true, true, true], // by status
  withLabels: true,
  selected: -1,
  // View: size in CSS pixels, zoom, offset, and the area that the points fill without zoom.
  width: 0,
  height: 0,
  ratio: 1,
  scale: 1,
  x: 0,
  y: 0,
  plotWidth: 0,
  plotHeight: 0,
  left: 0,
  top: 0,
};

// Points have coordinates from 0 to 65535; y increases upwards.
function toScreenX(x) {
  return map.left + map.x + (x / 65535) * map.plotWidth * map.scale;
}

function toScreenY(y) {
  return map.top + map.y + (1 - y / 65535) * map.plotHeight * map.scale;
}

const screenX = (i) => toScreenX(points[2 * i]);
const screenY = (i) => toScreenY(points[2 * i + 1]);

function pointRadius() {
  return Math.max(1.2, Math.min(4.5, 130 / Math.sqrt(data.n + 400))) * Math.min(2, Math.sqrt(map.scale));
}

function fitView() {
  map.ratio = Math.min(window.devicePixelRatio || 1, 2);
  map.width = map.frame.clientWidth;
  map.height = map.frame.clientHeight;
  const short = Math.min(map.width, map.height) - MARGIN;
  map.plotWidth = Math.min(map.width - MARGIN, 1.6 * short);
  map.plotHeight = Math.min(map.height - MARGIN, 1.6 * short);
  map.left = (map.width - map.plotWidth) / 2;
  map.top = (map.height - map.plotHeight) / 2;
}

// Zooms by `factor`, keeping the place (x, y) of the screen where it is.
function zoomView(factor, x, y) {
  const scale = Math.max(1, Math.min(40, map.scale * factor));
  const change = scale / map.scale;
  map.x = scale === 1 ? 0 : x - map.left - (x - map.left - map.x) * change;
  map.y = scale === 1 ? 0 : y - map.top - (y - map.top - map.y) * change;
  map.scale = scale;
}

// Points sorted by cell: those of cell c are cellOrder[cellStarts[c]] to cellOrder[cellStarts[c + 1] - 1].
const cellStarts = new Uint32Array(CELLS * CELLS + 1);
const cellOrder = new Uint32Array(data.n);

function sortByCell() {
  const cellOf = (i) => (points[2 * i] >> 9) + CELLS * (points[2 * i + 1] >> 9);
  for (let i = 0; i < data.n; i++) cellStarts[cellOf(i) + 1]++;
  for (let c = 0; c < CELLS * CELLS; c++) cellStarts[c + 1] += cellStarts[c];
  const next = cellStarts.slice();
  for (let i = 0; i < data.n; i++) cellOrder[next[cellOf(i)]++] = i;
}

// The visible point nearest to (x, y) on the screen, at most `reach` pixels away; -1 if there is none.
function nearestPoint(x, y, reach) {
  const cellWidth = (map.plotWidth * map.scale) / CELLS;
  const cellHeight = (map.plotHeight * map.scale) / CELLS;
  const column = (x - map.left - map.x) / cellWidth;
  const row = CELLS - (y - map.top - map.y) / cellHeight;
  const inside = (value) => Math.max(0, Math.min(CELLS - 1, Math.floor(value)));
  let best = -1;
  let least = reach * reach;
  for (let r = inside(row - reach / cellHeight); r <= inside(row + reach / cellHeight); r++) {
    for (let c = inside(column - reach / cellWidth); c <= inside(column + reach / cellWidth); c++) {
      for (let j = cellStarts[c + CELLS * r]; j < cellStarts[c + CELLS * r + 1]; j++) {
        const i = cellOrder[j];
        const distance = (screenX(i) - x) ** 2 + (screenY(i) - y) ** 2;
        if (map.shown[status[i]] && distance < least) {
          least = distance;
          best = i;
        }
      }
    }
  }
  return best;
}
