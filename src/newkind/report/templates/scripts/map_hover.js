// What the pointer is at: its image in a box, and all points of its category highlighted.

function highlightCategory(canvas, i) {
  const pen = canvas.getContext("2d");
  pen.setTransform(map.ratio, 0, 0, map.ratio, 0, 0);
  pen.clearRect(0, 0, map.width, map.height);
  if (i < 0) return;
  const k = category[i];
  const radius = pointRadius() + 0.8;
  const kind = data.categories[k].isNew ? "--new" : "--known";
  pen.fillStyle = map.colour === "kind" ? cssColour(kind) : `rgb(${categoryColour(k).join(" ")})`;
  pen.beginPath();
  for (const j of membersOf(k)) {
    if (!map.shown[status[j]]) continue;
    pen.moveTo(screenX(j) + radius, screenY(j));
    pen.arc(screenX(j), screenY(j), radius, 0, 2 * Math.PI);
  }
  pen.fill();
  pen.beginPath();
  pen.arc(screenX(i), screenY(i), radius + 4, 0, 2 * Math.PI);
  pen.strokeStyle = cssColour("--ink");
  pen.lineWidth = 2;
  pen.stroke();
}

function showHoverBox(box, i) {
  box.hidden = i < 0;
  if (i < 0) return;
  const { name, anchor } = data.categories[category[i]];
  showPicture(i, box.querySelector("img"), box.querySelector("canvas"), () => map.selected === i);
  box.querySelector(".file").textContent = fileOf(i);
  box.querySelector(".text").textContent = describe(i);
  const link = box.querySelector("a");
  link.textContent = `Go to ${name}`;
  link.setAttribute("href", `#${anchor}`);
  placeBox(box, screenX(i), screenY(i));
}

// Beside the point, inside the map.
function placeBox(box, x, y) {
  const width = box.offsetWidth;
  const beside = x > map.width - width - 24 ? x - width - 14 : x + 14;
  box.style.left = `${Math.max(6, Math.min(map.width - width - 6, beside))}px`;
  box.style.top = `${Math.max(6, Math.min(map.height - box.offsetHeight - 6, y - 40))}px`;
}
