// Finding one's way: filter and search of categories, and the current section in the navigation.

function filterIndex(field) {
  const entries = document.querySelectorAll(`#${field.dataset.filters} .index li`);
  const wanted = field.value.trim().toLowerCase();
  for (const entry of entries) entry.hidden = !entry.textContent.toLowerCase().includes(wanted);
}

for (const field of document.querySelectorAll("input[data-filters]")) {
  field.addEventListener("input", () => filterIndex(field));
}

// Go to a category: at once if it was picked from the list; Enter goes to the first that contains what was typed.
function connectSearch(field) {
  const options = [...document.querySelectorAll("#categories option")];
  const contains = (text, wanted) => text.toLowerCase().includes(wanted);

  function go(option) {
    if (!option) return;
    location.hash = option.dataset.anchor;
    field.value = "";
    field.blur();
  }

  field.addEventListener("input", (event) => {
    // Typing has another inputType; an entry of the list replaces the text.
    const isPicked = !event.inputType || event.inputType === "insertReplacementText";
    if (isPicked) go(options.find((option) => option.value === field.value));
  });
  field.addEventListener("keydown", (event) => {
    const wanted = field.value.trim().toLowerCase();
    if (event.key !== "Enter" || !wanted) return;
    go(
      options.find((option) => option.value.toLowerCase() === wanted) ||
        options.find((option) => contains(option.value, wanted)) ||
        options.find((option) => contains(option.textContent, wanted)),
    );
  });
}

const searchField = document.querySelector(".goto input");
if (searchField) connectSearch(searchField);

const sections = [...document.querySelectorAll("main > section")];
const visibleSections = new Set();

function markCurrentSection() {
  const current = sections.find((section) => visibleSections.has(section));
  for (const link of document.querySelectorAll("nav .links a")) {
    const isCurrent = Boolean(current) && link.getAttribute("href") === `#${current.id}`;
    if (!isCurrent) {
      link.removeAttribute("aria-current");
      continue;
    }
    link.setAttribute("aria-current", "true");
    const bar = link.parentElement; // on a phone it is wider than the screen
    bar.scrollLeft = link.offsetLeft - bar.offsetLeft + link.offsetWidth / 2 - bar.clientWidth / 2;
  }
}

const sectionObserver = new IntersectionObserver(
  (changes) => {
    for (const change of changes) {
      if (change.isIntersecting) visibleSections.add(change.target);
      else visibleSections.delete(change.target);
    }
    markCurrentSection();
  },
  { rootMargin: "-20% 0px -60% 0px" },
);
for (const section of sections) sectionObserver.observe(section);

// Paper shows what is folded away, except the complete lists of images.
window.addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details:not(.all-images)")) details.open = true;
});
