// All images of a category, in pages.

const PAGE_SIZE = 120;

// Images with a picture: unlabelled ones by decreasing confidence, then labelled ones.
function viewableMembers(k) {
  const isLabelled = (i) => Number(status[i] === LABELLED);
  return Array.from(membersOf(k))
    .filter(hasPicture)
    .sort((a, b) => isLabelled(a) - isLabelled(b) || confidence[b] - confidence[a] || a - b);
}

function makeTile(i) {
  const button = document.createElement("button");
  button.type = "button";
  button.dataset.image = i;
  button.title = `${fileOf(i)} (${describe(i)})`;
  button.classList.toggle("labelled", status[i] === LABELLED);
  const image = document.createElement("img");
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = data.side;
  image.alt = fileOf(i);
  showPicture(i, image, canvas);
  button.append(image.hidden ? canvas : image);
  if (image.hidden) button.setAttribute("aria-label", fileOf(i));
  return button;
}

function fillPages(details) {
  const grid = details.querySelector(".tile-grid");
  const more = details.querySelector(".more");
  const members = viewableMembers(Number(details.dataset.category));

  function showPage() {
    const first = grid.childElementCount;
    const page = members.slice(first, first + PAGE_SIZE);
    grid.append(...page.map(makeTile));
    const shown = first + page.length;
    const left = members.length - shown;
    more.hidden = !left;
    more.textContent = `Show ${Math.min(left, PAGE_SIZE)} more (${shown} of ${members.length} are shown)`;
  }

  more.addEventListener("click", showPage);
  showPage();
}

for (const details of document.querySelectorAll("details.all-images")) {
  details.addEventListener("toggle", () => fillPages(details), { once: true });
}
