"""The report in a real browser: Chromium, driven by Playwright. `make browser` installs it; without it these tests fail."""

import os
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from newkind.runs.run import Run

SCRIPT = "<script>alert(1)</script>"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MAC = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
"""Without a sandbox, since tests may run as root in a container; and it talks to nobody on its own account."""
SECONDS = 60


def _find_browser() -> str:
    wanted = os.environ.get("NEWKIND_BROWSER")
    found = next(filter(None, map(shutil.which, [wanted] if wanted else [*NAMES, MAC])), None)
    if found is None:
        pytest.fail("No Chromium here: run `make browser` (Debian, Ubuntu), or set NEWKIND_BROWSER to its path.")
    return found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=_find_browser(), args=list(QUIET))
        yield started
        started.close()


class Visit:
    """A page and everything that went on in it."""

    def __init__(self, browser: Browser, path: Path, **options: Any) -> None:
        self.context = browser.new_context(**options)
        self.context.set_default_timeout(1000 * SECONDS)
        self.page: Page = self.context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("dialog", self._dismiss)
        self.page.goto(path.as_uri())

    def _dismiss(self, dialog: Any) -> None:
        self.said.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def point_of(self, i: int) -> tuple[float, float]:
        """Where on the screen point i of the map is, after scrolling there."""
        canvas = self.page.locator(".atlas .points")
        canvas.scroll_into_view_if_needed()
        box = canvas.bounding_box()
        assert box is not None
        x, y = canvas.evaluate("(canvas, i) => canvas.locate(i)", i)
        return box["x"] + x, box["y"] + y


@pytest.fixture
def visit(browser: Browser, written: Run) -> Iterator[Visit]:
    visit = Visit(browser, written.report_file.resolve(), viewport={"width": 1280, "height": 900})
    yield visit
    visit.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 375])
def test_it_opens_without_a_word_and_asks_nobody(browser: Browser, written: Run, width: int, scheme: str) -> None:
    path = written.report_file.resolve()
    visit = Visit(browser, path, viewport={"width": width, "height": 800}, color_scheme=scheme)
    expect(visit.page.locator("h1")).to_contain_text("2 new categories")
    outside = [url for url in visit.asked if not url.startswith("data:") and url != path.as_uri()]
    assert outside == []
    assert visit.said == []
    # Every picture that the page shows is there, also those that were copied from their first place.
    shown = "images => images.filter(i => !i.closest('dialog, .hover')).map(i => i.decode().then(() => i.naturalWidth))"
    widths = visit.page.locator("img").evaluate_all(f"async images => Promise.all(({shown})(images))")
    assert len(widths) > 40
    assert min(widths) > 0
    # Nothing sticks out to the right.
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
    ground = visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(19, 21, 25)") == (scheme == "dark")
    visit.context.close()


def test_names_that_are_scripts_stay_text(visit: Visit) -> None:
    category = visit.page.locator("#c-script-alert-1-script h3")
    expect(category).to_have_text(SCRIPT)
    assert visit.page.locator("script").count() == 2
    image = visit.page.locator(f'.shot button[data-file="{SCRIPT}.jpg"]').first
    image.scroll_into_view_if_needed()
    image.click()
    expect(visit.page.locator("dialog .file")).to_have_text(f"{SCRIPT}.jpg")
    visit.page.keyboard.press("Escape")
    names = "JSON.parse(document.getElementById('map-data').textContent)"
    i = visit.page.evaluate(f"(d => d.names.findIndex(name => d.prefix + name === '{SCRIPT}.jpg'))({names})")
    visit.page.mouse.move(*visit.point_of(i))
    expect(visit.page.locator(".hover .file")).to_contain_text("<script>")
    assert visit.said == []


def test_pointing_at_the_map_shows_the_picture_and_a_click_leads_to_the_category(visit: Visit) -> None:
    for i in (0, 30):  # one of them has its own thumbnail, or both; a tiny picture has the other
        visit.page.mouse.move(*visit.point_of(i))
        hover = visit.page.locator(".hover")
        expect(hover).to_be_visible()
        shown = hover.locator("img:not([hidden]), canvas:not([hidden])")
        expect(shown).to_have_count(1)
        assert hover.locator(".file").inner_text()
    name = visit.page.locator(".hover .text").inner_text().split(",")[0]
    visit.page.mouse.click(*visit.point_of(30))
    visit.page.wait_for_url("**#c-*")
    target = visit.page.locator(".category:target")
    expect(target.locator("h3")).to_have_text(name)
    expect(target.locator("h3")).to_be_in_viewport()
    assert visit.said == []


def test_tiny_pictures_are_drawn(visit: Visit) -> None:
    """A point without a thumbnail of its own: its picture comes from a sheet, in its kind's colour."""
    slots = "new Int32Array(Uint8Array.from(atob(JSON.parse(document.getElementById('map-data').textContent).slots), c => c.charCodeAt(0)).buffer)"
    tiny = visit.page.evaluate(f"{slots}.findIndex(slot => slot >= 0)")
    assert tiny >= 0
    visit.page.mouse.move(*visit.point_of(tiny))
    expect(visit.page.locator(".hover canvas")).to_be_visible()
    opaque = "canvas => canvas.getContext('2d').getImageData(96, 96, 1, 1).data[3] === 255"
    visit.page.wait_for_function(f"({opaque})(document.querySelector('.hover canvas'))")


def test_the_maps_tools(visit: Visit) -> None:
    visit.point_of(0)
    canvas = visit.page.locator(".atlas .points")
    before = canvas.evaluate("c => c.locate(0)")
    visit.page.get_by_label("Closer").click()
    after = canvas.evaluate("c => c.locate(0)")
    assert before != after
    visit.page.get_by_role("button", name="All", exact=True).click()
    assert canvas.evaluate("c => c.locate(0)") == before
    visit.page.get_by_role("button", name="By category").click()
    expect(visit.page.get_by_role("button", name="By category")).to_have_attribute("aria-pressed", "true")
    for status in (0, 1, 2):
        visit.page.locator(f'[data-status="{status}"]').uncheck()
    visit.page.mouse.move(*visit.point_of(5))
    expect(visit.page.locator(".hover")).to_be_hidden()  # nothing is drawn, nothing to point at
    assert visit.said == []


def test_a_tap_shows_the_picture_first(browser: Browser, written: Run) -> None:
    visit = Visit(
        browser, written.report_file.resolve(), viewport={"width": 375, "height": 800}, has_touch=True, is_mobile=True
    )
    visit.page.touchscreen.tap(*visit.point_of(20))
    link = visit.page.locator(".hover.held a")
    expect(link).to_be_visible()
    assert "#" not in visit.page.url
    link.tap()
    visit.page.wait_for_url("**#c-*")
    visit.context.close()


def test_a_picture_can_be_looked_at_closer(visit: Visit) -> None:
    shot = visit.page.locator("#c-new-01 .typical button").first
    shot.scroll_into_view_if_needed()
    shot.click()
    dialog = visit.page.locator("dialog")
    expect(dialog).to_be_visible()
    expect(dialog.locator(".file")).to_have_text(shot.get_attribute("data-file") or "?")
    dialog.locator("a.go").click()
    expect(dialog).to_be_hidden()
    assert visit.page.url.endswith("#c-new-01")


def test_a_category_is_found_by_its_name(browser: Browser, many: Run) -> None:
    visit = Visit(browser, many.report_file.resolve(), viewport={"width": 1280, "height": 900})
    field = visit.page.get_by_label("Go to a category")
    for typed, anchor in (("new-17", "c-new-17"), ("012.rose", "c-012-rose"), ("nothing like it", "c-012-rose")):
        field.fill(typed)
        field.press("Enter")
        assert f"#{anchor}" in visit.page.url
        expect(visit.page.locator(".category:target h3")).to_be_in_viewport()
        field.fill("")
    expect(visit.page.locator('nav a[href="#known"]')).to_have_attribute("aria-current", "true")
    assert visit.said == []
    visit.context.close()


@pytest.mark.parametrize("width", [1280, 390])
def test_many_long_names_stay_inside(browser: Browser, many: Run, width: int) -> None:
    visit = Visit(browser, many.report_file.resolve(), viewport={"width": width, "height": 800})
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
    name = visit.page.locator("#known .index b").first
    assert name.evaluate("e => e.getBoundingClientRect().right <= e.closest('a').getBoundingClientRect().right")
    visit.context.close()


class _Listener(BaseHTTPRequestHandler):
    """Remembers that somebody called."""

    def do_GET(self) -> None:
        self.server.calls.append(self.path)  # type: ignore[attr-defined]
        self.send_error(404)

    def log_message(self, *_: object) -> None:
        pass


def test_the_policy_holds_even_if_markup_got_in(visit: Visit) -> None:
    """The second line of defence: an injected script, handler or outside picture does nothing."""
    inject = """port => {
        window.ran = [];
        const box = document.createElement('div');
        box.innerHTML = `<img src="x:" onerror="window.ran.push(1)"><img src="http://127.0.0.1:${port}/x.png">`;
        document.body.append(box);
        const script = document.createElement('script');
        script.textContent = 'window.ran.push(2)';
        document.body.append(script);
        return new Promise(done => setTimeout(() => done(window.ran), 500));
    }"""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Listener) as server:
        server.calls = []  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        assert visit.page.evaluate(inject, server.server_port) == []
        server.shutdown()
    assert server.calls == []  # type: ignore[attr-defined]


def test_it_prints(visit: Visit, tmp_path: Path) -> None:
    visit.page.emulate_media(media="print")
    expect(visit.page.locator("nav")).to_be_hidden()
    assert visit.page.pdf(path=str(tmp_path / "report.pdf"), format="A4").startswith(b"%PDF")
    assert visit.said == []
