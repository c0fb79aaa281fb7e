"""The report in a real browser: Chromium, driven by Playwright. `make browser` installs it; without it these tests fail."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from browser_visit import Visit
from newkind.report.write import write_report
from newkind.runs.assignments import read_assignments
from newkind.runs.metadata import metadata_csv, metadata_from
from newkind.runs.run import Run

SCRIPT = "<script>alert(1)</script>"
DATA = "JSON.parse(document.getElementById('page-data').textContent)"


@pytest.fixture
def visit(browser: Browser, written: Run) -> Iterator[Visit]:
    with Visit(browser, written.report_file) as visit:
        yield visit


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 375])
def test_it_opens_without_messages_and_requests(browser: Browser, written: Run, width: int, scheme: str) -> None:
    with Visit(browser, written.report_file, width=width, height=800, color_scheme=scheme) as visit:
        expect(visit.page.locator("h1")).to_contain_text("2 new categories")
        own = written.report_file.resolve().as_uri()
        assert [url for url in visit.requests if not url.startswith("data:") and url != own] == []
        assert visit.messages == []
        # Every image that the page shows is loaded, also those that were copied from their first place.
        shown = "images.filter(i => !i.closest('dialog, .hover')).map(i => i.decode().then(() => i.naturalWidth))"
        widths = visit.page.locator("img").evaluate_all(f"async images => Promise.all({shown})")
        assert len(widths) > 40
        assert min(widths) > 0
        # The page does not scroll sideways.
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
        ground = visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(19, 21, 25)") == (scheme == "dark")


def test_names_that_are_scripts_are_text(visit: Visit) -> None:
    category = visit.page.locator("#c-script-alert-1-script h3")
    expect(category).to_have_text(SCRIPT)
    assert visit.page.locator("script").count() == 2
    image = visit.page.locator(f'.shot button[data-file="{SCRIPT}.jpg"]').first
    image.scroll_into_view_if_needed()
    image.click()
    expect(visit.page.locator("dialog .file")).to_have_text(f"{SCRIPT}.jpg")
    visit.page.keyboard.press("Escape")
    i = visit.page.evaluate(f"(d => d.names.findIndex(name => d.prefix + name === '{SCRIPT}.jpg'))({DATA})")
    visit.page.mouse.move(*visit.point_of(i))
    expect(visit.page.locator(".hover .file")).to_contain_text("<script>")
    assert visit.messages == []


def test_pointing_at_the_map_shows_the_image_and_a_click_goes_to_the_category(visit: Visit) -> None:
    for i in (0, 30):
        visit.page.mouse.move(*visit.point_of(i))
        hover = visit.page.locator(".hover")
        expect(hover).to_be_visible()
        shown = hover.locator("img:not([hidden]), canvas:not([hidden])")
        expect(shown).to_have_count(1)
        assert hover.locator(".file").inner_text()
    anchor = visit.page.locator(".hover a").get_attribute("href")
    visit.page.mouse.click(*visit.point_of(30))
    visit.page.wait_for_url(f"**{anchor}")
    expect(visit.page.locator(".category:target h3")).to_be_in_viewport()
    assert visit.messages == []


def test_a_point_without_thumbnail_shows_its_tile(visit: Visit) -> None:
    slots = f"new Int32Array(Uint8Array.from(atob({DATA}.slots), c => c.charCodeAt(0)).buffer)"
    tiled = visit.page.evaluate(f"{slots}.findIndex(slot => slot >= 0)")
    assert tiled >= 0
    visit.page.mouse.move(*visit.point_of(tiled))
    expect(visit.page.locator(".hover canvas")).to_be_visible()
    opaque = "canvas => canvas.getContext('2d').getImageData(96, 96, 1, 1).data[3] === 255"
    visit.wait_until(f"({opaque})(document.querySelector('.hover canvas'))")


def test_tools_of_the_map(visit: Visit) -> None:
    visit.point_of(0)
    canvas = visit.page.locator(".map .points")
    before = canvas.evaluate("c => c.locate(0)")
    visit.page.get_by_label("Zoom in").click()
    assert canvas.evaluate("c => c.locate(0)") != before
    visit.page.get_by_role("button", name="All", exact=True).click()
    assert canvas.evaluate("c => c.locate(0)") == before
    visit.page.get_by_role("button", name="By category").click()
    expect(visit.page.get_by_role("button", name="By category")).to_have_attribute("aria-pressed", "true")
    for status in (0, 1, 2):
        visit.page.locator(f'[data-status="{status}"]').uncheck()
    visit.page.mouse.move(*visit.point_of(5))
    expect(visit.page.locator(".hover")).to_be_hidden()  # no points are drawn
    assert visit.messages == []


def test_a_tap_shows_the_image_first(browser: Browser, written: Run) -> None:
    with Visit(browser, written.report_file, width=375, height=800, has_touch=True, is_mobile=True) as visit:
        visit.page.touchscreen.tap(*visit.point_of(20))
        link = visit.page.locator(".hover.held a")
        expect(link).to_be_visible()
        assert "#" not in visit.page.url
        link.tap()
        visit.page.wait_for_url("**#c-*")


def test_an_image_opens_in_the_dialog(visit: Visit) -> None:
    shot = visit.page.locator("#c-new-01 .typical button").first
    shot.scroll_into_view_if_needed()
    shot.click()
    dialog = visit.page.locator("dialog")
    expect(dialog).to_be_visible()
    expect(dialog.locator(".file")).to_have_text(shot.get_attribute("data-file") or "?")
    dialog.locator("a.go").click()
    expect(dialog).to_be_hidden()
    assert visit.page.url.endswith("#c-new-01")


def test_metadata_is_shown_with_an_image(browser: Browser, make_run) -> None:
    run = make_run("run")
    files = [line.file for line in read_assignments(run)]
    columns = {"site": [f"{SCRIPT} {i}" for i in range(len(files))], "nothing": [""] * len(files)}
    run.write_text(run.metadata_file, metadata_csv(files, metadata_from(files, columns)))
    write_report(run)
    with Visit(browser, run.report_file) as visit:
        shot = visit.page.locator(".shot button").first
        shot.scroll_into_view_if_needed()
        shot.click()
        expect(visit.page.locator("dialog .metadata dt")).to_have_text(["site"])
        expect(visit.page.locator("dialog .metadata dd")).to_have_text([f"{SCRIPT} {shot.get_attribute('data-row')}"])
        assert visit.messages == []


def test_all_images_of_a_category_can_be_seen(browser: Browser, large: Run) -> None:
    with Visit(browser, large.report_file) as visit:
        category = visit.page.locator("#c-new-01")
        n = int(category.locator(".facts b").inner_text().split()[0])
        assert n > 120
        category.locator("summary").click()
        tiles = category.locator(".tile-grid button")
        expect(tiles).to_have_count(120)
        category.locator(".more").click()
        expect(tiles).to_have_count(n)
        expect(category.locator(".more")).to_be_hidden()
        drawn = """buttons => buttons.every(button => {
            const image = button.querySelector('img'), canvas = button.querySelector('canvas');
            if (image) return image.complete && image.naturalWidth > 0;
            return canvas.getContext('2d').getImageData(canvas.width / 2, canvas.height / 2, 1, 1).data[3] === 255;
        })"""
        visit.wait_until(f"({drawn})([...document.querySelectorAll('#c-new-01 .tile-grid button')])")
        names = tiles.evaluate_all("buttons => buttons.map(button => button.title)")
        assert len(set(names)) == n
        tiles.nth(n - 1).click()  # the least confident one
        dialog = visit.page.locator("dialog")
        expect(dialog.locator("img:not([hidden]), canvas:not([hidden])")).to_have_count(1)
        assert names[n - 1].startswith(dialog.locator(".file").inner_text())
        assert visit.messages == []


def test_a_category_is_found_by_its_name(browser: Browser, many: Run) -> None:
    with Visit(browser, many.report_file) as visit:
        field = visit.page.get_by_label("Go to category")
        for typed, anchor in (("new-17", "c-new-17"), ("012.rose", "c-012-rose"), ("nothing like it", "c-012-rose")):
            field.fill(typed)
            field.press("Enter")
            assert f"#{anchor}" in visit.page.url
            expect(visit.page.locator(".category:target h3")).to_be_in_viewport()
            field.fill("")
        expect(visit.page.locator('nav a[href="#known"]')).to_have_attribute("aria-current", "true")
        assert visit.messages == []


class _Listener(BaseHTTPRequestHandler):
    """Records requests."""

    def do_GET(self) -> None:
        self.server.calls.append(self.path)  # type: ignore[attr-defined]
        self.send_error(404)

    def log_message(self, *_: object) -> None:
        pass


def test_the_policy_holds_even_if_markup_were_injected(visit: Visit) -> None:
    """The second line of defence: an injected script, handler or external image does nothing."""
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
    assert visit.messages == []
