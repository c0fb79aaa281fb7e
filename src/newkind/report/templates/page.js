// The page works without this; with it, pictures that stand in several places are filled in, and can be looked at closer.
(function () {
  "use strict";
  const first = new Map();
  for (const image of document.querySelectorAll("img[data-line]")) first.set(image.dataset.line, image.src);
  for (const image of document.querySelectorAll("img[data-of]")) image.src = first.get(image.dataset.of) || "";
  window.newkindPictures = first; // for the map

  const closer = document.getElementById("closer");
  const link = closer.querySelector("a.go");
  document.addEventListener("click", function (event) {
    const button = event.target.closest(".shot button");
    if (button) {
      const image = button.querySelector("img");
      closer.querySelector("img").hidden = !image;
      if (image) closer.querySelector("img").src = image.src;
      closer.querySelector(".file").textContent = button.dataset.file;
      closer.querySelector(".text").textContent = button.dataset.text;
      link.textContent = "To the category " + button.dataset.name;
      link.setAttribute("href", "#" + button.dataset.anchor);
      closer.showModal();
    } else if (event.target === closer || event.target === link) {
      closer.close();
    }
  });

  for (const field of document.querySelectorAll("input[data-finds]")) {
    const entries = document.querySelectorAll("#" + field.dataset.finds + " .index li");
    field.addEventListener("input", function () {
      const wanted = field.value.trim().toLowerCase();
      for (const entry of entries) entry.hidden = !entry.textContent.toLowerCase().includes(wanted);
    });
  }

  window.addEventListener("beforeprint", function () {
    for (const details of document.querySelectorAll("details")) details.open = true;
  });
})();
