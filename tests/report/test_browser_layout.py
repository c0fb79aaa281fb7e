"""Layout of the report in a real browser: phones, contrast, labels, axes, and images on the first screen."""

from itertools import combinations
from typing import Any

import pytest
from playwright.sync_api import Browser

from browser_visit import Visit
from newkind.runs.run import Run

PHONES = (360, 390)

# Texts with less contrast than WCAG AA demands: 4.5, or 3 for large texts.
LOW_CONTRAST = """() => {
  const channel = v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const parse = text => (text.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim(), element = walker.currentNode.parentElement;
    if (!text || element.closest('script, style, title, datalist') || !element.getClientRects().length) continue;
    const style = getComputedStyle(element);
    if (style.visibility === 'hidden') continue;
    let ground = element;
    while (ground && (parse(getComputedStyle(ground).backgroundColor)[3] ?? 1) === 0) ground = ground.parentElement;
    const inSvg = element instanceof SVGElement;
    const a = luminance(parse(inSvg ? style.fill : style.color));
    const b = luminance(parse(getComputedStyle(ground || document.body).backgroundColor));
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const size = parseFloat(style.fontSize), isBold = Number(style.fontWeight) >= 700;
    const needed = size >= 24 || (isBold && size >= 18.66) ? 3 : 4.5;
    if (contrast < needed) found.push(`${text.slice(0, 30)}: ${contrast.toFixed(2)}`);
  }
  return found;
}"""

VISIBLE_IMAGES = """() => [...document.images].filter(image => {
  const box = image.getBoundingClientRect();
  return image.naturalWidth && box.width > 40 && box.top >= 0 && box.bottom <= innerHeight && box.right <= innerWidth;
}).length"""

BOXES = """elements => elements.filter(e => getComputedStyle(e).visibility === 'visible').map(e => {
  const box = e.getBoundingClientRect();
  return {text: e.textContent, left: box.left, right: box.right, top: box.top, bottom: box.bottom};
})"""


def overlap(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return bool(a["left"] < b["right"] and b["left"] < a["right"] and a["top"] < b["bottom"] and b["top"] < a["bottom"])


@pytest.mark.parametrize("width", PHONES)
def test_the_search_field_does_not_cover_the_navigation(browser: Browser, many: Run, width: int) -> None:
    with Visit(browser, many.report_file, width=width, height=800) as visit:
        assert visit.page.locator(".goto input").is_visible()
        links = visit.page.locator("nav a")
        reached = """link => {
            link.scrollIntoView({inline: 'center', block: 'nearest'});
            const box = link.getBoundingClientRect();
            const at = x => document.elementFromPoint(x, (box.top + box.bottom) / 2);
            return [box.left + 2, (box.left + box.right) / 2, box.right - 2].every(x => at(x) === link);
        }"""
        for i in range(links.count()):
            assert links.nth(i).evaluate(reached), links.nth(i).inner_text()
        field = visit.page.locator(".goto input").evaluate_all(BOXES)[0]
        for box in links.evaluate_all(BOXES):
            assert not overlap(field, box), box["text"]


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 800), (360, 640)])
def test_the_first_screen_shows_images_of_the_new_categories(
    browser: Browser, written: Run, width: int, height: int
) -> None:
    with Visit(browser, written.report_file, width=width, height=height) as visit:
        assert visit.page.evaluate(VISIBLE_IMAGES) >= 6
        assert visit.page.locator(".finds li").count() == 2
        assert visit.page.locator(".finds a").first.get_attribute("href") == "#c-new-01"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_contrast_of_texts(browser: Browser, written: Run, many: Run, compared: Run, width: int, scheme: Any) -> None:
    for run in (written, many, compared):
        with Visit(browser, run.report_file, width=width, color_scheme=scheme) as visit:
            visit.page.wait_for_timeout(200)  # labels of the map
            assert visit.page.evaluate(LOW_CONTRAST) == []


@pytest.mark.parametrize("width", PHONES)
def test_tables_do_not_scroll_sideways(browser: Browser, written: Run, many: Run, compared: Run, width: int) -> None:
    for run in (written, many, compared):
        with Visit(browser, run.report_file, width=width, height=800) as visit:
            assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
            visit.page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
            wide = visit.page.locator(".wide:has(table), table").evaluate_all(
                "boxes => boxes.filter(b => b.scrollWidth > b.clientWidth).map(b => b.textContent.slice(0, 40))"
            )
            assert wide == []


@pytest.mark.parametrize("width", [1280, 390])
def test_many_long_names_stay_inside(browser: Browser, many: Run, width: int) -> None:
    with Visit(browser, many.report_file, width=width, height=800) as visit:
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
        name = visit.page.locator("#known .index b").first
        assert name.evaluate("e => e.getBoundingClientRect().right <= e.closest('a').getBoundingClientRect().right")


def test_error_bars_have_a_fixed_scale(browser: Browser, written: Run) -> None:
    """5 % of all images are 5 % of the bar, whatever the largest error is."""
    with Visit(browser, written.report_file) as visit:
        rows = visit.page.locator(".errors tr:not(.axis)")
        assert rows.count() == 4
        for i in range(4):
            share = float(rows.nth(i).locator(".n").inner_text().split()[0]) / 100
            bar = rows.nth(i).locator("rect").bounding_box()
            scale = rows.nth(i).locator("svg").bounding_box()
            assert bar is not None
            assert scale is not None
            assert bar["width"] / scale["width"] == pytest.approx(share, abs=0.005)
        assert visit.page.locator(".errors .axis").inner_text().split() == ["0", "50", "%", "100", "%"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_confusion_matrix_has_titles_and_a_legend_that_holds_in_both_schemes(
    browser: Browser, written: Run, scheme: Any
) -> None:
    with Visit(browser, written.report_file, color_scheme=scheme) as visit:
        assert visit.page.locator(".confusion .title").all_text_contents() == ["True class", "Category"]
        for i in range(2):
            opacities = (
                visit.page.locator(".scales svg")
                .nth(i)
                .locator("rect:not(.ground)")
                .evaluate_all("boxes => boxes.map(box => Number(getComputedStyle(box).fillOpacity))")
            )
            assert opacities == sorted(opacities)
            assert opacities[0] < opacities[-1] == 1
        assert "darker" not in visit.page.locator("body").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_every_category_has_a_label_on_the_map(browser: Browser, written: Run, width: int, scheme: Any) -> None:
    with Visit(browser, written.report_file, width=width, height=800, color_scheme=scheme) as visit:
        labels = _labels(visit)
        assert {label["text"] for label in labels} == {"apple", "<script>alert(1)</scrip…", "new-01", "new-02"}
        visit.page.locator("[data-labels]").uncheck()
        visit.wait_until("![...document.querySelectorAll('.labels span')].some(e => e.style.visibility === 'visible')")


def test_labels_of_many_categories_do_not_overlap(browser: Browser, crowded: Run) -> None:
    for width, least in ((1280, 36), (390, 15)):
        with Visit(browser, crowded.report_file, width=width) as visit:
            assert len(_labels(visit)) >= least
            for _ in range(4):
                visit.page.get_by_label("Zoom in").click()
            visit.page.wait_for_timeout(200)
            _labels(visit)


def _labels(visit: Visit) -> list[dict[str, Any]]:
    """Visible labels of the map; checks that they are inside and do not overlap."""
    visit.page.locator(".map").scroll_into_view_if_needed()
    visit.wait_until("[...document.querySelectorAll('.labels span')].some(e => e.style.visibility === 'visible')")
    labels: list[dict[str, Any]] = visit.page.locator(".labels span").evaluate_all(BOXES)
    frame = visit.page.locator(".map").bounding_box()
    assert frame is not None
    for label in labels:
        assert frame["x"] <= label["left"] < label["right"] <= frame["x"] + frame["width"]
        assert frame["y"] <= label["top"] < label["bottom"] <= frame["y"] + frame["height"]
    assert not [pair for pair in combinations(labels, 2) if overlap(*pair)]
    return labels
