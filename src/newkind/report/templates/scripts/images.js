// Images of the run: the data embedded in the page, their thumbnails, and tiles cut from large sheets.
// All scripts of this folder are joined into one module, in the order of page.py.

const data = JSON.parse(document.getElementById("page-data").textContent);
const LABELLED = 0;
const KNOWN = 1;
const NEW = 2;

function decodeArray(text, ArrayType) {
  return new ArrayType(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
}

const IndexArray = data.indexBytes === 2 ? Uint16Array : Uint32Array;
const lines = decodeArray(data.lines, Int32Array); // rows of assignments.csv
const category = decodeArray(data.category, IndexArray);
const second = decodeArray(data.second, IndexArray);
const status = decodeArray(data.status, Uint8Array);
const confidence = decodeArray(data.confidence, Uint8Array); // in percent
const secondConfidence = decodeArray(data.secondConfidence, Uint8Array);
const slots = decodeArray(data.slots, Int32Array); // place of the tile in the sheets, or -1
const points = data.points && decodeArray(data.points, Uint16Array); // x, y of each image on the map

// Image numbers sorted by category: those of category k are order[starts[k]] to order[starts[k + 1] - 1].
const starts = new Uint32Array(data.categories.length + 1);
const order = new Uint32Array(data.n);

function sortByCategory() {
  for (let i = 0; i < data.n; i++) starts[category[i] + 1]++;
  for (let k = 0; k < data.categories.length; k++) starts[k + 1] += starts[k];
  const next = starts.slice();
  for (let i = 0; i < data.n; i++) order[next[category[i]]++] = i;
}

function membersOf(k) {
  return order.subarray(starts[k], starts[k + 1]);
}

function fileOf(i) {
  return data.prefix + data.names[i];
}

// The same sentence as in macros.html.
function describe(i) {
  const name = data.categories[category[i]].name;
  const other = data.categories[second[i]].name;
  if (status[i] !== LABELLED) return `${name} ${confidence[i]}\u00a0%, second ${other} ${secondConfidence[i]}\u00a0%`;
  if (secondConfidence[i] <= confidence[i]) return `labelled ${name} (${confidence[i]}\u00a0%)`;
  return `labelled ${name} (${confidence[i]}\u00a0%), predicted ${other} (${secondConfidence[i]}\u00a0%)`;
}

// Further columns of the data: name and value of those that are not empty.
const metadata = data.metadata.map((column) => ({ ...column, index: decodeArray(column.index, Uint32Array) }));

function metadataOf(i) {
  return metadata.map(({ name, values, index }) => [name, values[index[i]]]).filter(([, value]) => value !== "");
}

// Each thumbnail is in the file once; here it is copied to the other places that show it.
const thumbnails = new Map(); // row -> data URI

function copyThumbnails() {
  for (const image of document.querySelectorAll("img[data-line]")) thumbnails.set(Number(image.dataset.line), image.src);
  for (const image of document.querySelectorAll("img[data-copy]")) image.src = thumbnails.get(Number(image.dataset.copy)) || "";
}

const sheets = new Map(); // number -> promise of the decoded sheet

function loadSheet(number) {
  if (!sheets.has(number)) {
    const image = new Image();
    image.src = data.sheets[number];
    sheets.set(number, image.decode().then(() => image));
  }
  return sheets.get(number);
}

function hasPicture(i) {
  return thumbnails.has(lines[i]) || slots[i] >= 0;
}

// Draws image i's tile over the whole canvas, unless `isWanted` has become false while its sheet was decoded.
async function drawTile(canvas, i, isWanted = () => true) {
  const perSheet = data.columns ** 2;
  const place = slots[i] % perSheet;
  const pen = canvas.getContext("2d");
  pen.clearRect(0, 0, canvas.width, canvas.height);
  const sheet = await loadSheet(Math.floor(slots[i] / perSheet));
  if (!isWanted()) return;
  const x = (place % data.columns) * data.side;
  const y = Math.floor(place / data.columns) * data.side;
  pen.imageSmoothingQuality = "high";
  pen.drawImage(sheet, x, y, data.side, data.side, 0, 0, canvas.width, canvas.height);
}

// Shows image i in one of two elements and hides the other; both are hidden if it has no picture.
function showPicture(i, image, canvas, isWanted) {
  const source = thumbnails.get(lines[i]);
  image.hidden = !source;
  if (source) image.src = source;
  canvas.hidden = Boolean(source) || slots[i] < 0;
  if (!canvas.hidden) drawTile(canvas, i, isWanted);
}

sortByCategory();
copyThumbnails();
document.documentElement.classList.add("scripted");
