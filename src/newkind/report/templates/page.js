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

  // A name that was picked leads to its category at once; Enter takes the first that holds what was typed.
  const jump = document.querySelector(".goto input");
  if (jump) {
    const options = [...document.querySelectorAll("#categories option")];
    const go = function (found) {
      if (!found) return;
      location.hash = found.dataset.anchor;
      jump.value = "";
      jump.blur();
    };
    const holds = (text, wanted) => text.toLowerCase().includes(wanted);
    jump.addEventListener("input", function (event) {
      // Typing has an inputType of its own; what comes from the list replaces the text.
      if (!event.inputType || event.inputType === "insertReplacementText") go(options.find((option) => option.value === jump.value));
    });
    jump.addEventListener("keydown", function (event) {
      const wanted = jump.value.trim().toLowerCase();
      if (event.key !== "Enter" || !wanted) return;
      go(options.find((option) => option.value.toLowerCase() === wanted) || options.find((option) => holds(option.value, wanted)) ||
        options.find((option) => holds(option.textContent, wanted)));
    });
  }

  // Where in the page one is.
  const links = new Map([...document.querySelectorAll("nav a")].map((link) => [link.getAttribute("href").slice(1), link]));
  const visible = new Set();
  const watch = new IntersectionObserver(function (changes) {
    for (const change of changes) change.isIntersecting ? visible.add(change.target) : visible.delete(change.target);
    for (const link of links.values()) link.removeAttribute("aria-current");
    const here = [...document.querySelectorAll("main > section")].find((section) => visible.has(section));
    const link = here && links.get(here.id);
    if (!link) return;
    link.setAttribute("aria-current", "true");
    const bar = link.parentElement; // on a phone it is wider than the screen
    bar.scrollLeft = link.offsetLeft + link.offsetWidth / 2 - bar.clientWidth / 2;
  }, { rootMargin: "-20% 0px -60% 0px" });
  for (const section of document.querySelectorAll("main > section")) watch.observe(section);

  window.addEventListener("beforeprint", function () {
    for (const details of document.querySelectorAll("details")) details.open = true;
  });
})();
