"""Review with the keyboard alone, in a real browser: nothing here clicks."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from review_window import answer_of, go, ready, told, visit
from server_process import Server, Servers

import newkind
from feature_clusters import feature_clusters
from newkind.data import from_features
from painted_run import write_images

N_EACH = 24
CLASSES = ("apple", "banana", "cherry", "pear", "plum", "quince")


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def type_in_dialog(page: Page, text: str) -> None:
    """Type into the field of the dialog that opens, in place of what it contains, and confirm."""
    expect(page.locator("dialog[open] input")).to_be_focused()
    press(page, "ControlOrMeta+a")
    page.keyboard.type(text)
    press(page, "Enter")


def open_category(page: Page, name: str) -> None:
    """Go to a category through the page of all categories."""
    press(page, "c")
    page.wait_for_url("**/categories")
    ready(page)
    press(page, "f")
    expect(page.locator("#find")).to_be_focused()
    page.keyboard.type(name)
    press(page, "Enter", "Enter")
    page.wait_for_url("**/category?id=*")
    ready(page)
    expect(page.locator("h1")).to_contain_text(name)


@pytest.fixture
def clouds(tmp_path: Path) -> Path:
    """A run with a model, whose images are painted: three classes are known, and three are new."""
    arrays = feature_clusters(6, 3, n_each=N_EACH)
    names = [f"{CLASSES[kind]}-{i:03d}.png" for i, kind in enumerate(arrays["truth"])]
    found = from_features(arrays["features"], arrays["labels"], class_names=CLASSES[:3], names=names)
    newkind.discover(found, tmp_path / "run", n_categories=6, report=False)
    painted = [tmp_path / "painted" / file for file, _, _ in write_images(tmp_path / "painted", 12)]
    (tmp_path / "images").mkdir()
    for i, name in enumerate(names):
        (tmp_path / "images" / name).write_bytes(painted[i % len(painted)].read_bytes())
    config = tmp_path / "run" / "config.json"
    content = json.loads(config.read_text())
    config.write_text(json.dumps(content | {"data": str(tmp_path / "images"), "root": str(tmp_path / "images")}))
    return tmp_path / "run"


def class_of(page: Page, category: str, tmp_path: Path) -> str:
    """True class of most images of a category, by their names."""
    answer = answer_of(tmp_path)
    kinds = [answer.files[line].split("-")[0] for line in answer.members(category)]
    return max(CLASSES, key=kinds.count)


def grow(page: Page, kind: str, tmp_path: Path) -> None:
    """Mark what is not of this class, page by page, until there is a bound, and approve the rest."""
    files = answer_of(tmp_path).files
    for _ in range(60):
        if page.locator("#bound").is_visible():
            break
        lines = page.locator("#candidates button").evaluate_all("all => all.map(each => Number(each.dataset.line))")
        for line in lines:
            if not files[line].startswith(kind):
                press(page, "Space")
            press(page, "ArrowRight")
        number = int(page.locator("#grow").get_attribute("data-page") or "")
        press(page, "Enter")
        page.locator(f"#grow[data-page='{number + 1}']").wait_for()
    expect(page.locator("#bound")).to_contain_text("with 95 % confidence")
    press(page, "Enter")
    page.wait_for_url("**/category?id=*")
    ready(page)


def test_from_the_first_look_to_a_refit(browser: Browser, clouds: Path, tmp_path: Path, servers: Servers) -> None:
    server = servers.start(clouds)
    with visit(browser, server) as opened:
        page = opened.page
        kinds = {name: class_of(page, name, tmp_path) for name in ("new-01", "new-02", "new-03")}

        open_category(page, "new-01")  # merge, which was wrong
        press(page, "e")
        type_in_dialog(page, "new-02")
        told(page, "Merged ")
        press(page, "u")
        told(page, "Undone: ")
        assert class_of(page, "new-02", tmp_path) == kinds["new-02"]
        press(page, "U")
        told(page, "Redone: ")

        open_category(page, "new-01")  # and can be split again
        press(page, "s")
        page.wait_for_url("**/split?id=*")
        expect(page.locator("#groups > li").first).to_be_visible()
        press(page, "Enter")
        page.wait_for_url("**/categories")
        told(page, "Split ")

        open_category(page, "new-03")
        press(page, "Space", "ArrowRight", "Shift+ArrowRight", "v")
        type_in_dialog(page, "cherry")
        told(page, "Moved 3 images to cherry.")
        press(page, "u")
        told(page, "Undone: ")
        press(page, "r")
        type_in_dialog(page, kinds["new-03"])
        told(page, "Renamed ")
        expect(page.locator("h1")).to_have_text(kinds["new-03"])

        press(page, "q")  # approve another one with a name, in the queue
        page.wait_for_url("**/")
        ready(page)
        while page.locator("#queue .card[data-kind=approve][data-named=no]:focus").count() == 0:
            press(page, "j")
        name = page.locator("#queue .card:focus").get_attribute("data-a") or ""
        press(page, "A")
        type_in_dialog(page, "something")
        told(page, "Approved ")
        assert answer_of(tmp_path).find(name).name == "something"

        open_category(page, kinds["new-03"])
        press(page, "g")
        page.wait_for_url("**/grow?id=*")
        ready(page)
        grow(page, kinds["new-03"], tmp_path)

        press(page, "/")  # search, and decide about what was found
        page.keyboard.type("apple-001")
        press(page, "Enter")
        page.wait_for_url("**/search?text=apple-001")
        ready(page)
        press(page, "Enter")
        expect(page.locator("dialog.viewer .file")).to_have_text("apple-001.png")
        press(page, "Escape", "Space", "y")
        told(page, "Approved apple-001.png")

        press(page, "?")
        expect(page.locator("dialog.help")).to_contain_text("Refit the model")
        press(page, "Escape", "F")
        expect(page.locator("dialog.refit-plan")).to_contain_text("would move")
        press(page, "Enter")
        told(page, "Refitted")
        assert answer_of(tmp_path).refit
        assert answer_of(tmp_path).find(kinds["new-03"]).id == "new-03"

        press(page, "h")
        page.wait_for_url("**/history")
        expect(page.locator("#history tr").nth(1)).to_contain_text("Refit")
        press(page, "u")
        told(page, "Undone: ")
        assert not answer_of(tmp_path).refit
        press(page, "U")
        told(page, "Redone: ")
        assert answer_of(tmp_path).refit
        assert opened.messages == []
    server.kill()


@pytest.mark.parametrize("path", ["/split?id=new-01", "/grow?id=new-01", "/sheet"])
def test_enter_presses_what_has_the_focus(page: Page, server: Server, tmp_path: Path, path: str) -> None:
    go(page, server, path)
    page.get_by_role("link", name="Map").focus()
    press(page, "Enter")
    page.wait_for_url("**/map")
    assert answer_of(tmp_path).last == 0


def test_enter_and_space_show_all_images_of_a_group(page: Page, server: Server, tmp_path: Path) -> None:
    go(page, server, "/split?id=new-01")
    group = page.locator("#groups > li").first
    shown = group.locator("img").count()
    group.get_by_role("button", name="Show all").focus()
    press(page, "Enter")
    expect(group.get_by_role("button", name="Show all")).to_be_hidden()
    assert group.locator("img").count() > shown
    assert answer_of(tmp_path).last == 0


def test_escape_leaves_a_field(page: Page, server: Server) -> None:
    go(page, server, "/category?id=new-01")
    press(page, "/")
    expect(page.locator("#search input")).to_be_focused()
    press(page, "Escape", "?")
    expect(page.locator("dialog.help")).to_be_visible()


def test_images_can_be_moved_by_keys_when_they_are_large(page: Page, server: Server) -> None:
    go(page, server, "/category?id=new-01")
    press(page, "Enter", "+", "+")
    stage = page.locator(".stage")
    before = stage.evaluate("each => each.scrollLeft")
    press(page, "Shift+ArrowRight")
    assert stage.evaluate("each => each.scrollLeft") > before
    expect(page.locator("dialog.viewer .fine")).to_contain_text("1 of")
    press(page, "Escape")
    go(page, server, "/images?kind=mislabelled")
    press(page, "o")
    expect(page.locator("dialog.viewer .file")).to_have_text(re.compile("img/"))
    press(page, "Escape")
    expect(page.locator("dialog")).to_have_count(0)


def test_a_read_only_page_offers_no_decision(
    browser: Browser, server: Server, servers: Servers, tmp_path: Path
) -> None:
    shown = servers.start(tmp_path / "run", read_only=True)
    with visit(browser, shown) as opened:
        press(opened.page, "?")
        expect(opened.page.locator("dialog.help")).not_to_contain_text("Undo")
        expect(opened.page.locator("dialog.help")).not_to_contain_text("Refit")
        press(opened.page, "Escape")
        expect(opened.page.get_by_role("link", name="Grow")).to_have_count(0)
    shown.kill()
