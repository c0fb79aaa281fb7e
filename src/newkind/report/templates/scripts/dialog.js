// A larger view of an image, with its file and its assignment.

const dialog = document.getElementById("closer");
const dialogImage = dialog.querySelector("img");
const dialogCanvas = dialog.querySelector("canvas");
const dialogLink = dialog.querySelector("a.go");

function openDialog(texts) {
  dialog.querySelector(".file").textContent = texts.file;
  dialog.querySelector(".text").textContent = texts.text;
  const list = dialog.querySelector(".metadata");
  list.replaceChildren();
  for (const [name, value] of texts.image >= 0 ? metadataOf(texts.image) : []) {
    for (const [kind, text] of [["dt", name], ["dd", value]]) {
      list.appendChild(document.createElement(kind)).textContent = text;
    }
  }
  dialogLink.textContent = `Go to ${texts.name}`;
  dialogLink.setAttribute("href", `#${texts.anchor}`);
  dialog.showModal();
}

function openShot(button) {
  const image = button.querySelector("img");
  dialogCanvas.hidden = true;
  dialogImage.hidden = !image;
  if (image) dialogImage.src = image.src;
  openDialog({ ...button.dataset, image: lines.indexOf(Number(button.dataset.row)) });
}

function openTile(i) {
  const { name, anchor } = data.categories[category[i]];
  showPicture(i, dialogImage, dialogCanvas, () => dialog.open);
  openDialog({ file: fileOf(i), text: describe(i), name, anchor, image: i });
}

document.addEventListener("click", (event) => {
  const shot = event.target.closest(".shot button");
  const tile = event.target.closest(".tile-grid button");
  if (shot) openShot(shot);
  else if (tile) openTile(Number(tile.dataset.image));
  else if (event.target === dialog || event.target === dialogLink) dialog.close();
});
