"""Review in a real browser: Chromium, driven by Playwright, with a real server."""

import re
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import APIResponse, Browser, Page, Route, expect
from review_window import answer_of, go, told, visit
from server_process import Server, Servers

import newkind
from feature_clusters import feature_clusters
from newkind.runs.run import Run
from painted_run import SCRIPT

PAGES = {
    "/": "Queue",
    "/categories": "Categories",
    "/category?id=new-01": "new-01",
    "/merge?a=new-01&b=new-02": "Are these the same?",
    "/split?id=new-01": "Split new-01",
    "/grow?id=new-01": "Grow new-01",
    "/images?kind=mislabelled": "Possible mislabels",
    "/sheet": "Do these belong?",
    "/search?text=img": "Search for “img”",
    "/map": "Map of all images",
    "/history": "History",
}


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (360, "dark")])
def test_every_page_opens_without_messages(browser: Browser, server: Server, width: int, scheme: str) -> None:
    with visit(browser, server, width=width, height=800, color_scheme=scheme) as opened:
        for path, title in PAGES.items():
            go(opened.page, server, path)
            expect(opened.page.locator("h1")).to_have_text(title)
            assert opened.page.evaluate("document.documentElement.scrollWidth") <= width, path
            # Images below the visible part load lazily, and would be waited for without an end.
            loaded = "i => { i.loading = 'eager'; return i.decode().then(() => i.naturalWidth); }"
            shown = f"images.filter(i => i.checkVisibility()).map({loaded})"
            widths = opened.page.locator("main img").evaluate_all(f"async images => Promise.all({shown})")
            assert min(widths, default=1) > 0, path
            # Everything that can be pressed or filled in has a name for screen readers.
            named = (
                "e.ariaLabel || e.textContent.trim() || e.labels?.length || e.title || e.querySelector('img[alt]')?.alt"
            )
            unnamed = f"all => all.filter(e => !({named})).length"
            assert opened.page.locator("button, a, select, input:not([type=hidden])").evaluate_all(unnamed) == 0, path
        assert {url.split("/")[2] for url in opened.requests} == {server.host}
        assert opened.messages == []


def test_the_token_is_not_in_the_address(page: Page, server: Server) -> None:
    assert page.url == f"{server.base}/"
    assert page.evaluate("document.cookie") == ""  # scripts cannot read it
    page.reload()
    expect(page.locator("h1")).to_have_text("Queue")


def test_rename_and_undo_by_keyboard(page: Page, server: Server, tmp_path: Path) -> None:
    go(page, server, "/category?id=new-01")
    page.keyboard.press("r")
    expect(page.locator("dialog input")).to_be_focused()
    expect(page.locator("dialog datalist option")).to_have_count(4)
    completions = page.locator("dialog datalist option").evaluate_all("all => all.map(each => each.value)")
    assert set(completions) == {"apple", SCRIPT, "new-01", "new-02"}
    page.keyboard.type("Williams pear")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Williams pear")
    told(page, "Renamed")
    assert answer_of(tmp_path).find("new-01").name == "Williams pear"
    page.reload()
    expect(page.locator("h1")).to_have_text("Williams pear")
    page.keyboard.press("u")
    expect(page.locator("h1")).to_have_text("new-01")
    page.keyboard.press("U")
    expect(page.locator("h1")).to_have_text("Williams pear")


def test_the_name_of_another_category_merges(page: Page, server: Server, tmp_path: Path) -> None:
    before = len(answer_of(tmp_path).members("new-01")) + len(answer_of(tmp_path).members("new-02"))
    go(page, server, "/category?id=new-01")
    page.keyboard.press("r")
    page.locator("dialog input").fill("new-02")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Merge", exact=True).click()
    page.wait_for_url("**/category?id=new-02")
    expect(page.locator("[data-total]")).to_have_text(f"{before} images")
    assert answer_of(tmp_path).merged == {"new-01": "new-02"}


def test_a_merge_keeps_the_name_that_a_person_gave(page: Page, server: Server) -> None:
    server.open()
    server.post("/api/decide", {"decision": {"kind": "rename", "category": "new-01", "name": "pear"}, "based_on": 0})
    go(page, server, "/category?id=new-01")
    page.keyboard.press("e")
    expect(page.locator("dialog h2")).to_have_text("Merge pear with")
    page.keyboard.type("new-02")
    page.keyboard.press("Enter")
    page.wait_for_url("**/category?id=new-02")  # the id of the other one leads to the category that stays
    expect(page.locator("h1")).to_contain_text("pear")
    told(page, "Merged new-02 into pear.")


def test_select_and_move_by_keyboard(page: Page, server: Server, tmp_path: Path) -> None:
    go(page, server, "/category?id=new-01")
    grid = page.get_by_role("listbox", name="Images of new-01")
    grid.focus()
    for key in ("Space", "ArrowRight", "Shift+ArrowRight", "Shift+ArrowRight"):
        page.keyboard.press(key)
    expect(page.locator("[data-count]")).to_have_text("4 images selected")
    lines = page.locator(".cell[aria-selected=true]").evaluate_all("all => all.map(each => Number(each.dataset.line))")
    page.keyboard.press("v")
    page.keyboard.type("appl")
    page.keyboard.press("Enter")
    told(page, "Moved 4 images to apple.")
    expect(page.locator(".selection")).to_be_hidden()
    assert set(lines) <= set(answer_of(tmp_path).members("apple").tolist())
    # A number moves to a neighbour; a new name makes a category.
    grid.focus()
    page.keyboard.press("Space")
    page.keyboard.press("1")
    told(page, "Moved img/")
    expect(page.locator(".selection")).to_be_hidden()
    grid.focus()
    page.keyboard.press("Space")
    page.keyboard.press("v")
    page.keyboard.type("quince")
    page.keyboard.press("Enter")
    told(page, "quince.")
    assert answer_of(tmp_path).find("quince").status == "new"


def test_select_with_the_mouse_and_drag(page: Page, server: Server, tmp_path: Path) -> None:
    go(page, server, "/category?id=new-01")
    page.locator(".cell").nth(0).click()
    page.locator(".cell").nth(3).click(modifiers=["Shift"])
    expect(page.locator("[data-count]")).to_have_text("4 images selected")
    target = page.locator("[data-drop]").first
    category = target.get_attribute("data-drop") or ""
    before = len(answer_of(tmp_path).members(category))
    page.locator(".cell").nth(1).drag_to(target)
    told(page, "Moved 4 images to")
    assert len(answer_of(tmp_path).members(category)) == before + 4


def test_right_wrong_and_junk(page: Page, server: Server, tmp_path: Path) -> None:
    go(page, server, "/category?id=new-01&order=extremes")
    grid = page.locator("#grid")
    for key, text in (
        ("y", "in new-01."),
        ("x", "from new-01."),
        ("Delete", "as junk."),
    ):
        grid.focus()
        page.keyboard.press("ArrowRight")  # the image that was approved stays
        page.keyboard.press(key)
        told(page, text)
    answer = answer_of(tmp_path)
    assert (answer.status == "junk").sum() == 1
    assert (answer.status == "approved").sum() == 1
    assert list(answer.rejected.values()) == [frozenset({"new-01"})]
    page.keyboard.press("a")
    told(page, "Approved new-01.")
    expect(page.locator("#category .ok")).to_be_visible()


def test_name_and_approve_without_wrong_images(page: Page, server: Server, tmp_path: Path) -> None:
    go(page, server, "/category?id=new-01&order=extremes")
    n = len(answer_of(tmp_path).members("new-01"))
    page.locator("#grid").focus()
    for key in ("Space", "ArrowRight", "Space"):
        page.keyboard.press(key)
    lines = page.locator(".cell[aria-selected=true]").evaluate_all("all => all.map(each => Number(each.dataset.line))")
    page.keyboard.press("X")
    expect(page.locator("dialog h2")).to_have_text("Approve without 2 selected images as")
    page.keyboard.type("Williams pear")
    page.keyboard.press("Enter")
    told(page, "Approved new-01 as Williams pear, without 2 images.")
    expect(page.locator("h1")).to_contain_text("Williams pear")
    expect(page.locator(".selection")).to_be_hidden()
    answer = answer_of(tmp_path)
    assert (answer.last, answer.find("Williams pear").id, answer.find("new-01").approved) == (1, "new-01", True)
    assert set(answer.rejected) == set(lines)
    assert (answer.status[answer.members("new-01")] == "approved").sum() == n - 2
    # In the queue, one key asks for the name of the category and approves it.
    go(page, server, "/")
    card = page.locator("#queue [data-kind=approve][data-a='new-02']")
    card.focus()
    page.keyboard.press("A")
    page.keyboard.type("quince")
    page.keyboard.press("Enter")
    told(page, "Approved new-02 as quince.")
    assert answer_of(tmp_path).find("quince").approved
    # A category that has a name can be approved with it, or with another one.
    page.locator("#queue [data-kind=approve][data-a='apple']").focus()
    page.keyboard.press("A")
    expect(page.locator("dialog input")).to_have_value("apple")
    page.keyboard.press("Enter")
    told(page, "Approved apple.")


def test_a_decision_is_told_when_the_page_shows_it(page: Page, server: Server) -> None:
    held: list[Route] = []
    page.route(f"{server.base}/", lambda route: held.append(route))
    card = page.locator("#queue [data-kind=approve][data-a='new-02']")
    card.focus()
    with page.expect_response("**/api/decide"):
        page.keyboard.press("y")
    expect(page.locator("#queue")).to_be_visible()
    while not held:
        page.wait_for_timeout(20)
    expect(page.locator("#messages")).not_to_contain_text("Approved new-02.")
    held[0].continue_()
    told(page, "Approved new-02.")
    assert card.count() == 0  # the next key decides about a card that is shown


def test_late_answers_do_not_replace_newer_ones(page: Page, server: Server) -> None:
    held: list[Route] = []
    go(page, server, "/split?id=new-01")
    page.route(re.compile(r"/api/split.*n=3"), lambda route: held.append(route))
    page.locator("#n").select_option("3")
    page.locator("#n").select_option("4")
    expect(page.locator("#groups > li")).to_have_count(4)
    with page.expect_response(re.compile(r"/api/split.*n=3")) as late:
        held[0].continue_()
    late.value.finished()
    page.evaluate(
        "fetch('/api/state').then(answer => answer.text())"
    )  # the script has met the late answer before this one
    assert page.locator("#groups > li").count() == 4


def test_an_answer_about_the_time_before_a_decision_is_no_news(page: Page, server: Server) -> None:
    go(page, server, "/category?id=new-01")
    held: list[tuple[Route, APIResponse]] = []
    page.route("**/api/state", lambda route: held.append((route, route.fetch())))
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(page.locator("h1")).to_have_text("new-01")
    page.keyboard.press("a")
    told(page, "Approved new-01.")
    assert held[0][1].json()["number"] == 0
    for route, answer in held:
        route.fulfill(response=answer)
    page.unroute("**/api/state")
    page.evaluate("fetch('/api/state').then(answer => answer.text())")
    page.evaluate("fetch('/').then(answer => answer.text())")  # a refresh would be over by then
    expect(page.locator("#messages")).not_to_contain_text("another window")


def test_only_visible_images_are_in_the_document(page: Page, server: Server) -> None:
    go(page, server, "/search")
    expect(page.locator("[data-total]")).to_have_text("400 images")
    assert page.locator(".cell").count() < 150
    page.locator("#grid").focus()
    page.keyboard.press("End")
    last = page.locator(".cell[aria-posinset='400']")
    expect(last).to_be_in_viewport()
    assert page.locator(".cell").count() < 150
    assert page.evaluate("document.querySelector('#grid').getAttribute('aria-activedescendant')") == last.get_attribute(
        "id"
    )
    expect(last).to_have_attribute("title", re.compile(r"img/"))
    page.keyboard.press("Control+a")
    expect(page.locator("[data-count]")).to_have_text("400 images selected")
    page.keyboard.press("Escape")
    expect(page.locator(".selection")).to_be_hidden()


def test_the_image_at_full_size(page: Page, server: Server) -> None:
    go(page, server, "/category?id=new-01")
    page.locator("#grid").focus()
    page.keyboard.press("Enter")
    viewer = page.locator("dialog.viewer")
    expect(viewer.locator(".fine")).to_contain_text("1 of")
    first = viewer.locator(".file").inner_text()
    expect(viewer.locator("dd").first).to_have_text("new-01")
    page.keyboard.press("ArrowRight")
    expect(viewer.locator(".fine")).to_contain_text("2 of")
    assert viewer.locator(".file").inner_text() != first
    width = "document.querySelector('.stage img').getBoundingClientRect().width"
    before = page.evaluate(width)
    page.keyboard.press("+")
    assert page.evaluate(width) > before
    page.keyboard.press("0")
    assert page.evaluate(width) == before
    page.keyboard.press("Space")
    page.keyboard.press("Escape")
    expect(viewer).to_have_count(0)
    expect(page.locator("[data-count]")).to_have_text("1 image selected")


def test_similar_images_first(page: Page, server: Server) -> None:
    go(page, server, "/category?id=new-01&order=extremes")
    page.locator("#grid").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    line = page.locator(".cell.active").get_attribute("data-line")
    page.keyboard.press("l")
    expect(page.locator(".cell[data-index='0']")).to_have_attribute("data-line", line or "")


def test_split(page: Page, server: Server, tmp_path: Path) -> None:
    n = len(answer_of(tmp_path).members("new-01"))
    go(page, server, "/split?id=new-01")
    page.locator("#n").select_option("3")
    expect(page.locator("#groups > li")).to_have_count(3)
    expect(page.locator("#groups input:checked")).to_have_count(2)
    page.keyboard.press("3")
    expect(page.locator("#groups input:checked")).to_have_count(1)
    page.locator("h1").click()
    page.keyboard.press("Enter")
    page.wait_for_url("**/categories")
    told(page, "Split ")  # on the page that it leads to
    answer = answer_of(tmp_path)
    (opened,) = (state for state in answer.categories if state.parent == "new-01")
    assert 0 < len(answer.members(opened.id)) == n - len(answer.members("new-01"))


def test_grow_to_a_bound(page: Page, server: Server, tmp_path: Path) -> None:
    answer = answer_of(tmp_path)
    pears = {str(line) for line, name in enumerate(answer.files) if "/2-" in name or name.startswith(SCRIPT)}
    go(page, server, "/grow?id=new-01")
    for _ in range(60):
        if page.locator("#bound").is_visible():
            break
        cells = page.locator("#candidates button")
        lines = cells.evaluate_all("all => all.map(each => each.dataset.line)")
        for i, line in enumerate(lines):
            if line not in pears:
                cells.nth(i).click()
        number = int(page.locator("#grow").get_attribute("data-page") or "")
        page.keyboard.press("Enter")
        page.locator(f"#grow[data-page='{number + 1}']").wait_for()
    expect(page.locator("#bound")).to_contain_text("At least 9")
    expect(page.locator("#bound")).to_contain_text("with 95 % confidence")
    page.keyboard.press("Enter")
    page.wait_for_url("**/category?id=new-01")
    answer = answer_of(tmp_path)
    confirmed = [line for line in answer.members("new-01") if answer.status[line] == "approved"]
    assert len(confirmed) > 60
    assert sum(str(line) in pears for line in confirmed) >= 0.95 * len(confirmed)


def test_the_queue_by_keyboard(page: Page, tmp_path: Path) -> None:
    expect(page.locator("#queue .card").first).to_be_focused()
    n = page.locator("#queue [data-kind=approve]").count()
    assert n == 4
    card = page.locator("#queue [data-kind=approve]").first
    name = card.get_attribute("data-a") or ""
    card.focus()
    page.keyboard.press("y")
    told(page, "Approved")
    expect(page.locator("#queue [data-kind=approve]")).to_have_count(3)
    expect(page.locator("#progress")).to_contain_text("1 of 4 categories decided")
    assert answer_of(tmp_path).find(name).approved
    page.keyboard.press("z")
    expect(page.locator("#progress")).to_contain_text("0 of 4 categories decided")
    page.keyboard.press("?")
    expect(page.locator("dialog.help")).to_contain_text("Yes: merge, or approve")
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**?*")


def test_images_to_check(page: Page, server: Server, tmp_path: Path) -> None:
    go(page, server, "/images?kind=mislabelled")
    expect(page.locator("#left")).to_have_text("1 image to check")
    expect(page.locator(".option")).to_have_count(3)
    expect(page.locator(".option").first).to_contain_text("present label")
    name = page.locator("#file").inner_text()
    page.keyboard.press("2")
    told(page, "in new-01.")
    expect(page.locator("#choices")).to_contain_text("Nothing is left")
    answer = answer_of(tmp_path)
    assert answer.row[name] in answer.members("new-01")
    page.keyboard.press("u")
    expect(page.locator("#left")).to_have_text("1 image to check")


def test_a_sheet_approves_and_rejects_by_one_decision(page: Page, server: Server, tmp_path: Path) -> None:
    go(page, server, "/sheet")
    expect(page.locator("#nothing")).to_be_visible()  # apple has too many undecided images for a sheet
    server.open()
    answer = answer_of(tmp_path)
    apples = answer.members("apple")
    apples = apples[answer.status[apples] != "labelled"]
    decisions: list[dict[str, object]] = [
        {"kind": "approve", "category": "apple", "lines": apples[5:].tolist()},
        {"kind": "rename", "category": "new-02", "name": "plum"},
        {"kind": "approve", "category": "new-02", "lines": answer.members("new-02")[3:].tolist()},
    ]
    for i, decision in enumerate(decisions):
        server.post("/api/decide", {"decision": decision, "based_on": i})
    go(page, server, "/sheet")
    groups = page.locator("#candidates section")
    expect(groups).to_have_count(2)
    numbers = [groups.nth(i).locator("li").count() for i in (0, 1)]
    assert sorted(numbers) == [3, 5]
    expect(page.locator("#candidates .name")).to_have_text(["plum", "apple"] if numbers[0] == 3 else ["apple", "plum"])
    expect(groups.first.locator(".face img")).to_have_count(4)
    cells = page.locator("#candidates button")
    expect(cells.first).to_be_focused()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")  # into the second group
    expect(cells.nth(numbers[0] + 1)).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    expect(cells.nth(1)).to_be_focused()
    page.keyboard.press("x")
    expect(page.locator("#next")).to_contain_text("Approve 7, reject 1")
    page.keyboard.press("o")
    expect(page.locator("dialog.viewer .buttons")).to_contain_text("Not wrong")
    page.keyboard.press("Escape")
    marked = int(cells.nth(1).get_attribute("data-line") or -1)
    page.keyboard.press("Enter")
    told(page, "Approved 7 images, rejected ")
    answer = answer_of(tmp_path)
    assert answer.last == 4
    assert list(answer.rejected) == [marked]
    expect(page.locator("#nothing")).to_be_visible()  # the second category of the rejected image has too many
    page.keyboard.press("u")
    expect(page.locator("#candidates li")).to_have_count(8)


def test_the_next_sheet_is_shown_from_its_beginning(page: Page, server: Server, tmp_path: Path) -> None:
    server.open()
    answer = answer_of(tmp_path)
    for number, (category, name) in enumerate([("new-01", "pear"), ("new-02", "plum")]):
        server.post(
            "/api/decide", {"decision": {"kind": "rename", "category": category, "name": name}, "based_on": number}
        )
    undecided = {
        k.id: [row for row in answer.members(k.id) if answer.status[row] != "labelled"] for k in answer.categories
    }
    lines = [int(row) for rows in undecided.values() for row in rows[24:]]
    server.post("/api/decide", {"decision": {"kind": "approve", "lines": lines}, "based_on": 2})
    page.set_viewport_size({"width": 800, "height": 600})
    go(page, server, "/sheet")
    expect(page.locator("#left")).to_contain_text("48 on this sheet")
    cells = page.locator("#candidates button")
    cells.last.scroll_into_view_if_needed()
    before = cells.first.get_attribute("data-line") or ""
    page.keyboard.press("Enter")
    expect(cells.first).not_to_have_attribute("data-line", before)
    expect(cells.first).to_be_focused()
    expect(cells.first).to_be_in_viewport(ratio=1)


def test_a_lasso_on_the_map(page: Page, server: Server, tmp_path: Path) -> None:
    go(page, server, "/map")
    expect(page.locator(".wait")).to_be_hidden()
    canvas = page.locator(".map .marks")
    box = canvas.bounding_box()
    assert box is not None
    x, y = canvas.evaluate("canvas => canvas.locate(7)")
    page.mouse.move(box["x"] + x - 30, box["y"] + y - 30)
    page.mouse.down()
    for dx, dy in ((30, -30), (30, 30), (-30, 30), (-30, -25)):
        page.mouse.move(box["x"] + x + dx, box["y"] + y + dy, steps=4)
    page.mouse.up()
    expect(page.locator(".selection")).to_be_visible()
    lines = page.locator(".cell[aria-selected=true]").evaluate_all("all => all.map(each => Number(each.dataset.line))")
    assert 7 in lines
    marks = page.locator(".cell .mark").all_inner_texts()
    assert len(marks) == len(lines)
    assert not set(marks) & {"0", "0 %"}
    page.keyboard.press("v")
    page.keyboard.type("lasso")
    page.keyboard.press("Enter")
    told(page, "lasso.")
    assert set(page.locator(".cell .mark").all_inner_texts()) == {"✓"}
    answer = answer_of(tmp_path)
    assert set(lines) <= set(answer.members(answer.find("lasso").id).tolist())


def test_images_of_the_map_are_selected_by_keys(page: Page, server: Server) -> None:
    go(page, server, "/map")
    expect(page.locator(".wait")).to_be_hidden()
    points = page.locator(".map .marks")
    page.keyboard.press("s")
    expect(page.locator("[data-count]")).to_have_text("400 images selected")
    page.keyboard.press("Escape")
    expect(page.locator(".selection")).to_be_hidden()
    for key in ("+", "ArrowRight"):
        page.keyboard.press(key)
    box = points.bounding_box()
    assert box is not None
    places = points.evaluate("canvas => [...Array(400).keys()].map(i => canvas.locate(i))")
    n_visible = sum(0 <= x <= box["width"] and 0 <= y <= box["height"] for x, y in places)
    assert 0 < n_visible < 400
    page.keyboard.press("s")
    expect(page.locator("[data-count]")).to_have_text(f"{n_visible} image{'s' * (n_visible > 1)} selected")


def test_a_note_by_the_keyboard(page: Page, server: Server) -> None:
    go(page, server, "/category?id=new-01")
    page.keyboard.press("n")
    page.keyboard.type("ask Ann")
    page.keyboard.press("Enter")
    told(page, "ask Ann")
    expect(page.locator("#category")).to_contain_text("Note: ask Ann")


def test_two_windows_do_not_lose_decisions(browser: Browser, page: Page, server: Server, tmp_path: Path) -> None:
    go(page, server, "/category?id=new-01")
    page.locator("#grid").focus()
    page.keyboard.press("Space")
    with visit(browser, server) as other:
        go(other.page, server, "/category?id=new-01")
        other.page.locator("#grid").focus()
        other.page.keyboard.press("Space")
        other.page.keyboard.press("v")
        other.page.keyboard.type("apple")
        other.page.keyboard.press("Enter")
        told(other.page, "to apple.")
    # The first window has the same image selected: it is told, keeps its selection, and cannot overwrite the decision.
    expect(page.locator("#stale")).to_be_visible()
    expect(page.locator("[data-count]")).to_have_text("1 image selected")
    before = answer_of(tmp_path).last
    page.keyboard.press("v")
    page.keyboard.type("new-02")
    page.keyboard.press("Enter")
    expect(page.locator("#stale")).to_contain_text("changed in the meantime")
    assert answer_of(tmp_path).last == before
    page.get_by_role("button", name="Refresh").click()
    expect(page.locator("#stale")).to_be_hidden()
    expect(page.locator(".selection")).to_be_hidden()
    page.locator("#grid").focus()
    page.keyboard.press("Space")
    page.keyboard.press("y")
    told(page, "in new-01.")


def test_a_page_without_a_selection_follows_other_windows(page: Page, server: Server) -> None:
    server.open()
    decision = {"kind": "rename", "category": "new-01", "name": "from elsewhere"}
    go(page, server, "/category?id=new-01")
    server.post("/api/decide", {"decision": decision, "based_on": 0})
    expect(page.locator("h1")).to_have_text("from elsewhere")
    expect(page.locator("#stale")).to_be_hidden()


def test_refit_shows_what_would_move(browser: Browser, tmp_path: Path, servers: Servers) -> None:
    data = tmp_path / "clouds.npz"
    np.savez(data, **feature_clusters(6, 3, n_each=16))
    newkind.discover(data, tmp_path / "run", n_categories=6, report=False)
    before = answer_of(tmp_path)
    moved = next(state.id for state in before.categories if state.status == "new")
    server = servers.start(tmp_path / "run")
    with visit(browser, server) as opened:
        page = opened.page
        go(page, server, f"/category?id={moved}")
        page.keyboard.press("a")
        told(page, "Approved")
        page.keyboard.press("F")
        dialog = page.locator("dialog.refit-plan")
        expect(dialog).to_contain_text(f"Known from now on: {moved}.")
        assert answer_of(tmp_path).last == 1  # nothing is recorded before it is accepted
        dialog.get_by_role("button", name="Accept").click()
        told(page, "Refitted")
        expect(page.locator("#category .facts").first).to_contain_text("known")
        assert answer_of(tmp_path).refit
        go(page, server, "/history")
        page.locator("[data-event='1']").click()  # the refit has learned from it
        told(page, "Undo the refit first")
        assert answer_of(tmp_path).last == 2
        go(page, server, f"/category?id={moved}")
        page.keyboard.press("u")
        expect(page.locator("#category .facts").first).to_contain_text("new")
        assert not answer_of(tmp_path).refit
    server.kill()


def test_history_undoes_any_decision(page: Page, server: Server, tmp_path: Path) -> None:
    server.open()
    for i, category in enumerate(("new-01", "new-02")):
        server.post(
            "/api/decide", {"decision": {"kind": "rename", "category": category, "name": f"n{i}"}, "based_on": i}
        )
    go(page, server, "/history")
    page.locator("[data-event='1']").click()
    expect(page.locator("tr.undone")).to_have_count(1)
    answer = answer_of(tmp_path)
    assert answer.find("new-01").name == "new-01"
    assert answer.find("new-02").name == "n1"


def test_a_server_that_was_killed_is_told(
    browser: Browser, painted: Run, tmp_path: Path, servers: Servers, server: Server
) -> None:
    with visit(browser, server) as opened:
        go(opened.page, server, "/category?id=new-01")
        opened.page.keyboard.press("a")
        told(opened.page, "Approved new-01.")
        server.kill()
        opened.page.keyboard.press("r")
        told(opened.page, "does not answer")
    again = servers.start(tmp_path / "run")
    with visit(browser, again) as opened:
        expect(opened.page.locator("#progress")).to_contain_text("1 of 4 categories decided")
    again.kill()


def test_a_read_only_page(browser: Browser, painted: Run, servers: Servers) -> None:
    server = servers.start(painted.folder, read_only=True)
    with visit(browser, server) as opened:
        for path in ("/", "/category?id=new-01", "/images?kind=mislabelled"):
            go(opened.page, server, path)
            expect(opened.page.locator(".note").first).to_contain_text("Read-only")
            for key in ("y", "a", "x", "Delete"):
                opened.page.keyboard.press(key)
        assert opened.messages == []
    server.kill()
    assert not (painted.folder / "decisions.sqlite").exists()
