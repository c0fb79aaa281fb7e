"""Review in Chromium: what other windows decided, lists that are longer than a page loads at once, and lists without images."""

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Page, Route, expect
from review_window import answer_of, go, told
from server_process import Server

from newkind.runs.decision import Decision
from newkind.runs.decisions import Decisions
from newkind.runs.run import Run

UNPLACED = "/images?kind=unplaced"


def reject_all(folder: Path, category: str) -> int:
    """Reject images of a category until none of them has one; returns the number of the last event."""
    decisions = Decisions(Run(folder))
    files = [decisions.answer.files[i] for i in decisions.answer.members(category)]
    for _ in range(4):
        answer = decisions.answer
        for k, state in enumerate(answer.categories):
            own = tuple(name for name in files if answer.category[answer.row[name]] == k)
            if own:
                decisions.decide(Decision("reject", category=state.id, files=own))
    assert {int(decisions.answer.category[decisions.answer.row[name]]) for name in files} == {-1}
    return decisions.answer.last


def test_more_images_to_check_are_loaded(page: Page, server: Server, tmp_path: Path) -> None:
    """The list has two images at a time, instead of 200."""
    reject_all(tmp_path / "run", "new-01")
    asked: list[int] = []

    def answer_two(route: Route) -> None:
        asked.append(int(parse_qs(urlsplit(route.request.url).query).get("skip", ["0"])[0]))
        response = route.fetch()
        content = response.json()
        route.fulfill(response=response, json=content | {"images": content["images"][:2]})

    page.route("**/api/doubtful*", answer_two)
    go(page, server, UNPLACED)
    seen: list[str] = []
    for key in ("j", "j", "x", "j", "x", "1"):
        name = page.locator("#file").inner_text()
        assert name not in seen
        seen.append(name)
        page.keyboard.press(key)
        expect(page.locator("#file")).not_to_have_text(name)
        expect(page.locator("#file")).not_to_have_text("")
    answer = answer_of(tmp_path)
    assert {name for name in seen if answer.status[answer.row[name]] == "junk"} == {seen[2], seen[4]}
    assert set(asked) == {0, 2, 3}


def test_only_skipped_images_are_left(page: Page, server: Server) -> None:
    go(page, server, "/images?kind=mislabelled")
    page.keyboard.press("j")
    expect(page.locator("#choices")).to_contain_text("skipped")


def test_images_to_check_follow_other_windows(page: Page, server: Server, tmp_path: Path) -> None:
    last = reject_all(tmp_path / "run", "new-01")
    server.open()
    go(page, server, UNPLACED)
    rows = (answer_of(tmp_path).category < 0).nonzero()[0].tolist()
    names = [answer_of(tmp_path).files[row] for row in rows]
    expect(page.locator("#file")).to_have_text(names[0])
    junk = {"decision": {"kind": "junk", "lines": [rows[1]]}, "based_on": last}
    server.post("/api/decide", junk)
    page.keyboard.press("1")
    expect(page.locator("#file")).to_have_text(names[2])  # another window has decided about the second one
    answer = answer_of(tmp_path)
    assert (answer.status[rows[0]], answer.status[rows[1]]) == ("approved", "junk")


def test_no_image_is_passed_over_when_another_window_decides_about_a_skipped_one(
    page: Page, server: Server, tmp_path: Path
) -> None:
    last = reject_all(tmp_path / "run", "new-01")
    server.open()
    go(page, server, UNPLACED)
    answer = answer_of(tmp_path)
    rows = (answer.category < 0).nonzero()[0].tolist()
    page.keyboard.press("j")
    expect(page.locator("#file")).to_have_text(answer.files[rows[1]])
    server.post("/api/decide", {"decision": {"kind": "junk", "lines": [rows[0]]}, "based_on": last})
    page.keyboard.press("1")
    expect(page.locator("#file")).to_have_text(answer.files[rows[2]])


def test_a_key_that_is_pressed_twice_decides_once(page: Page, server: Server, tmp_path: Path) -> None:
    last = reject_all(tmp_path / "run", "new-01")
    go(page, server, UNPLACED)
    answer = answer_of(tmp_path)
    rows = (answer.category < 0).nonzero()[0].tolist()
    page.evaluate(
        "for (const _ of [1, 2]) document.body.dispatchEvent(new KeyboardEvent('keydown', { key: '1', bubbles: true }))"
    )
    expect(page.locator("#file")).to_have_text(answer.files[rows[1]])
    expect(page.locator("#progress")).to_be_visible()
    expect(page.locator("#stale")).to_be_hidden()
    assert answer_of(tmp_path).last == last + 1


def test_growing_notices_other_windows(page: Page, server: Server, tmp_path: Path) -> None:
    server.open()
    go(page, server, "/grow?id=new-01")
    lines = page.locator("#candidates button").evaluate_all("all => all.map(each => Number(each.dataset.line))")
    server.post("/api/decide", {"decision": {"kind": "junk", "lines": lines[:1]}, "based_on": 0})
    page.keyboard.press("Enter")
    told_or_refreshed = page.locator("#stale:not([hidden]) button, #messages p")
    told_or_refreshed.first.wait_for()
    assert answer_of(tmp_path).status[lines[0]] == "junk"
    if page.locator("#stale button").is_visible():
        page.locator("#stale button").click()
    expect(page.locator(f"#candidates button[data-line='{lines[0]}']")).to_have_count(0)
    page.keyboard.press("Enter")
    page.locator("#grow[data-page='1']").wait_for()
    assert answer_of(tmp_path).status[lines[0]] == "junk"


def test_approving_others_without_a_selection_rejects_nothing(page: Page, server: Server, tmp_path: Path) -> None:
    n = len(answer_of(tmp_path).members("apple"))
    go(page, server, "/category?id=apple")
    page.locator("#grid").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("X")
    told(page, "Approved apple.")
    answer = answer_of(tmp_path)
    assert answer.rejected == {}
    assert len(answer.members("apple")) == n


def test_keys_on_lists_without_images(page: Page, server: Server) -> None:
    """The fixture fails if one of them is an error."""
    go(page, server, "/search?text=nothing+has+this+name")
    expect(page.locator("[data-total]")).to_have_text("No image matches.")
    page.locator("#grid").focus()
    for key in ("Enter", "Shift+ArrowRight", "Shift+End", "ArrowDown", "Space", "Control+a", "Escape"):
        page.keyboard.press(key)
    go(page, server, "/sheet")
    expect(page.locator("#nothing")).to_be_visible()
    for key in ("o", "ArrowRight", "ArrowDown", "x"):
        page.keyboard.press(key)
    expect(page.locator("dialog")).to_have_count(0)
