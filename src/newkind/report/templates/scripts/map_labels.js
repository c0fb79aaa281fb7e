// Names of categories on the map, at the centres of their points and without overlaps.

const MAX_LABEL_AREA = 0.1; // of the map's area, once there are MIN_LABELS of them
const MIN_LABELS = 20;
const LABEL_GAP = 3;
// Where a label may be, in label widths and heights from the centre; the first place without overlap is used.
const BESIDE = [[0, -1], [0, 1], [0.6, -1], [-0.6, -1], [0.6, 1], [-0.6, 1], [0.6, 0], [-0.6, 0], [0, -2], [0, 2], [1, 0], [-1, 0]];
const AT_CENTRE = [[0, 0], ...BESIDE];

// The point nearest to the medians of a category: a label is never where its category has no points.
function centreOf(k) {
  const members = membersOf(k);
  const middle = members.length >> 1;
  const x = Array.from(members, (i) => points[2 * i]).sort((a, b) => a - b)[middle];
  const y = Array.from(members, (i) => points[2 * i + 1]).sort((a, b) => a - b)[middle];
  const distance = (i) => (points[2 * i] - x) ** 2 + (points[2 * i + 1] - y) ** 2;
  return members.reduce((best, i) => (distance(i) < distance(best) ? i : best));
}

function makeLabel(k) {
  const { name, isNew } = data.categories[k];
  const element = document.createElement("span");
  element.className = isNew ? "new" : "known";
  element.textContent = name.length > 24 ? `${name.slice(0, 23)}…` : name;
  const centre = centreOf(k);
  return { k, element, isNew, centre, spread: spreadOf(k, centre), n: membersOf(k).length };
}

// Median vertical distance of a category's points from its centre.
function spreadOf(k, centre) {
  const distances = Array.from(membersOf(k), (i) => Math.abs(points[2 * i + 1] - points[2 * centre + 1]));
  return distances.sort((a, b) => a - b)[distances.length >> 1];
}

// Labels of all categories with points, the new and then the largest categories first. Their sizes do not change, so they are read once.
function makeLabels(parent) {
  const labels = data.categories.map((_, k) => k).filter((k) => membersOf(k).length).map(makeLabel);
  labels.sort((a, b) => Number(b.isNew) - Number(a.isNew) || b.n - a.n);
  parent.replaceChildren(...labels.map((label) => label.element));
  for (const label of labels) {
    label.width = label.element.offsetWidth;
    label.height = label.element.offsetHeight;
  }
  return labels;
}

function isLabelShown({ isNew }) {
  return map.withLabels && (isNew ? map.shown[NEW] : map.shown[KNOWN] || map.shown[LABELLED]);
}

function overlaps(a, b) {
  return (
    Math.abs(a.x - b.x) < (a.width + b.width) / 2 + LABEL_GAP && Math.abs(a.y - b.y) < (a.height + b.height) / 2 + LABEL_GAP
  );
}

// The first place of a label that is free; null if all are taken or its centre is outside of the map.
function freePlace({ centre, spread, width, height }, taken) {
  const x = screenX(centre);
  const y = screenY(centre);
  if (x < 0 || y < 0 || x > map.width || y > map.height) return null;
  const inside = (value, half, size) => Math.max(half + 2, Math.min(size - half - 2, value));
  // The label of a compact category would hide its points.
  const isCompact = (spread / 65535) * map.plotHeight * map.scale < height / 2;
  for (const [right, down] of isCompact ? BESIDE : AT_CENTRE) {
    const box = {
      x: inside(x + right * (width + LABEL_GAP), width / 2, map.width),
      y: inside(y + down * (height + LABEL_GAP), height / 2, map.height),
      width,
      height,
    };
    if (!taken.some((other) => overlaps(box, other))) return box;
  }
  return null;
}

function placeLabels(labels) {
  const taken = [];
  let area = 0;
  for (const label of labels) {
    const hasRoom = taken.length < MIN_LABELS || area < MAX_LABEL_AREA * map.width * map.height;
    const box = hasRoom && isLabelShown(label) ? freePlace(label, taken) : null;
    const { style } = label.element;
    style.visibility = box ? "visible" : "hidden";
    if (!box) continue;
    taken.push(box);
    area += box.width * box.height;
    style.left = `${box.x - box.width / 2}px`;
    style.top = `${box.y - box.height / 2}px`;
    style.borderLeftColor = map.colour === "category" ? `rgb(${categoryColour(label.k).join(" ")})` : "";
  }
}
