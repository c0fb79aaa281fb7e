"""The page itself: one file, everything escaped, each picture once, nothing of anybody overwritten."""

import base64
import hashlib
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from newkind.errors import RunError
from newkind.report.contents import read_contents
from newkind.report.page import MARK, Album, _breaks, _common_folder, _embed, anchors_of
from newkind.report.write import PAGE_BYTES, PICTURE_BYTES, SHEET_BYTES, _picture_bytes, try_report, write_report
from newkind.runs.run import Run

SCRIPT = "<script>alert(1)</script>"
MakeRun = Callable[..., Run]


def quiet(_: str) -> None:
    pass


class Page(HTMLParser):
    """Every tag and what stands between."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def all(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.tags if tag == name]


@pytest.fixture
def text(written: Run) -> str:
    return written.report_file.read_text(encoding="utf-8")


@pytest.fixture
def page(text: str) -> Page:
    return Page(text)


def test_nothing_comes_from_outside(page: Page) -> None:
    for tag, attributes in page.tags:
        assert tag not in ("iframe", "object", "embed", "base", "audio", "video")
        for name, value in attributes.items():
            assert not name.startswith("on"), "no handlers in markup"
            assert name != "style", "the policy forbids them"
            if name in ("src", "href", "action", "srcset", "poster"):
                assert value == "" or (value or "").startswith(("#", "data:")), f"{tag} {name}={value}"


def test_the_policy_allows_exactly_its_own_style_and_script(text: str) -> None:
    policy = Page(text).all("meta")[2]["content"] or ""
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for tag in ("style", "script"):
        body = re.findall(rf"<{tag}>(.*?)</{tag}>", text, flags=re.DOTALL)
        assert len(body) == 1
        digest = base64.b64encode(hashlib.sha256(body[0].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


def test_names_stay_text(page: Page) -> None:
    assert len(page.all("script")) == 2  # the map's data and ours
    assert f"{SCRIPT}.jpg" in [a.get("data-file") for a in page.all("button")]
    assert f"{SCRIPT}.jpg" in [a.get("alt") for a in page.all("img")]
    headings = [text for text in page.texts if text.strip() == SCRIPT]
    assert headings, "the category's name is shown as it is"


def test_each_picture_stands_in_the_file_once(page: Page) -> None:
    pictures = [a for a in page.all("img") if (a.get("src") or "").startswith("data:")]
    lines = [a["data-line"] for a in pictures]
    assert len(lines) == len(set(lines)) > 20
    copies = [a["data-of"] for a in page.all("img") if "data-of" in a]
    assert set(copies) <= set(lines)


def test_every_link_leads_somewhere(page: Page) -> None:
    places = {a["id"] for _, a in page.tags if "id" in a}
    assert {a["href"] for a in page.all("a")} <= {f"#{place}" for place in places}
    assert {"c-apple", "c-script-alert-1-script", "c-new-01", "c-new-02"} <= places
    ids = [a["id"] for _, a in page.tags if "id" in a]
    assert len(ids) == len(set(ids))


def test_new_categories_come_before_known_ones(text: str) -> None:
    order = [
        text.index(f'id="{name}"') for name in ("c-new-01", "c-new-02", "c-apple", "doubtful", "map", "truth", "made")
    ]
    assert order[0] < order[2] < order[3] < order[4] < order[5] < order[6]


def test_the_maps_data(written: Run, text: str) -> None:
    found = re.search(r'<script type="application/json" id="map-data">(.*?)</script>', text, flags=re.DOTALL)
    assert found
    assert "<" not in found[1]
    data = json.loads(found[1])
    assert data["n"] == 120
    contents = read_contents(written)
    assert [data["prefix"] + name for name in data["names"]] == contents.files
    category = np.frombuffer(base64.b64decode(data["category"]), dtype="<u2")
    assert (category == contents.category).all()
    assert len(base64.b64decode(data["points"])) == 120 * 4
    slots = np.frombuffer(base64.b64decode(data["slots"]), dtype="<i4")
    pictured = {int(a["data-line"]) for a in Page(text).all("img") if a.get("data-line")}  # type: ignore[arg-type]
    for line in range(120):
        assert (slots[line] >= 0) != (line in pictured), "a tiny picture for those that have no other"


@settings(deadline=None, max_examples=50)
@given(st.text())
def test_embedded_text_comes_back_and_cannot_end_the_script(text: str) -> None:
    embedded = str(_embed({"a": [text]}))
    assert not set("<>&\u2028\u2029") & set(embedded)
    assert json.loads(embedded) == {"a": [text]}


def test_names_with_odd_characters(run: Run) -> None:
    """Bytes that are not UTF-8, directions, quotes and line ends in file names."""
    odd = "bad\udcff\u202e\"'&\n.png"
    text = run.assignments_file.read_text().replace("img/3-11.png", '"' + odd.replace('"', '""') + '"')
    run.assignments_file.write_bytes(text.encode("utf-8", "surrogateescape"))
    page = Page(write_report(run).read_text(encoding="utf-8"))
    shown = "".join(page.texts) + "".join(str(a) for _, a in page.tags)
    assert "\udcff" not in shown
    assert "\u202e" not in shown


def test_anchors_are_plain_and_unique(run: Run) -> None:
    contents = read_contents(run)
    names = ["a b", "A-B", "äöü", "", 'x"><img src=x>']
    contents = replace(
        contents, categories=[replace(c, name=n) for c, n in zip(contents.categories, names, strict=True)]
    )
    found = anchors_of(contents)
    assert len(set(found)) == 5
    assert all(re.fullmatch(r"[a-z0-9-]+", anchor) for anchor in found)


def test_an_album_hands_each_picture_out_once() -> None:
    album = Album({3: "data:x"})
    assert [album.take(3), album.take(3), album.take(4)] == ["data:x", "", ""]
    assert album.has(3)
    assert not album.has(4)


@pytest.mark.parametrize(
    ("names", "prefix"),
    [(["a/b/1", "a/b/2"], "a/b/"), (["ab/1", "ac/1"], ""), (["a/b"], "a/"), ([], ""), (["x", "x"], "")],
)
def test_the_common_folder(names: list[str], prefix: str) -> None:
    assert _common_folder(names) == prefix


def test_a_report_replaces_a_report_and_nothing_else(run: Run, tmp_path: Path) -> None:
    assert write_report(run) == run.report_file
    before = run.report_file.read_bytes()
    assert MARK.encode() in before[:400]
    write_report(run)  # again
    run.report_file.write_text("<html>my own notes</html>")
    with pytest.raises(RunError, match="not a Newkind report"):
        write_report(run)
    assert run.report_file.read_text() == "<html>my own notes</html>"
    with pytest.raises(RunError, match="no folder"):
        write_report(run, out=tmp_path / "nowhere" / "a.html")
    with pytest.raises(RunError, match="cannot be written"):
        write_report(run, out=tmp_path)
    assert write_report(run, out=tmp_path / "there.html").exists()


def test_a_failure_never_loses_the_run(run: Run) -> None:
    said: list[str] = []
    run.scores_file.write_text("{")
    assert try_report(run) is None
    assert "The run is complete" in said[0]
    assert "newkind report" in said[0]
    run.scores_file.unlink()
    assert try_report(run) == run.report_file


def test_runs_that_lack_something_have_a_report_too(make_run: MakeRun, tmp_path: Path) -> None:
    bare = make_run("bare", truth=False)
    for file in (bare.features_file, bare.metrics_file, bare.environment_file):
        file.unlink()
    shutil.rmtree(tmp_path / "data")
    said: list[str] = []
    page = Page(write_report(bare).read_text())
    assert "not to be found" in said[0]
    assert str(tmp_path / "data") in said[0]
    assert not any((a.get("src") or "").startswith("data:") for a in page.all("img"))
    shown = "".join(page.texts)
    assert "kept no features" in shown
    assert "How right it is" not in shown
    assert len(page.all("script")) == 1


def test_where_things_lay_is_nobodys_business(written: Run, make_run: MakeRun, many: Run) -> None:
    """Neither with its images there, nor without them, nor beside another run."""
    first, second = make_run("a"), make_run("b", seed=1)
    for run, text in (
        (written, written.report_file.read_text()),
        (first, write_report(first, compare=second).read_text()),
    ):
        assert str(run.folder.parent) not in text
        assert "data/metadata.csv" in text
    assert "/home/somebody" not in many.report_file.read_text()


def test_long_names_may_be_broken_and_stay_whole(many: Run) -> None:
    page = Page(many.report_file.read_text())
    name = "007.Rose_breasted_Long_tailed_Grosbeak_of_the_North"
    assert len(page.all("wbr")) > 100
    shown = "".join(page.texts)
    assert shown.count(name) >= 3  # index, chapter, a neighbour
    assert "new-01 holds the most images" in shown
    assert _breaks("a_<b>/c.d 3.5") == "a_&lt;b&gt;/<wbr>c.<wbr>d 3.<wbr>5"


def test_nobody_is_told_that_none_is_sure(many: Run, written: Run) -> None:
    assert "half of the images at least 40\u00a0%" in many.report_file.read_text()
    assert "of images at least 80\u00a0%" in written.report_file.read_text()


def test_two_runs_side_by_side(make_run: MakeRun) -> None:
    first, second = make_run("a"), make_run("b", seed=1, wrong=3)
    page = Page(write_report(first, compare=second).read_text())
    shown = "".join(page.texts)
    assert "What moved" in shown
    assert "became right, became wrong" in shown
    assert "entropy weight" in shown
    assert {a["href"] for a in page.all("a")} <= {f"#{a['id']}" for _, a in page.tags if "id" in a}


def test_the_budget_for_pictures_leaves_room_for_the_rest() -> None:
    assert _picture_bytes(n_points=6000, n_pictures=2000) == PICTURE_BYTES
    for points, pictures in ((50_000, 5000), (0, 0), (50_000, 100_000)):
        budget = _picture_bytes(n_points=points, n_pictures=pictures)
        assert 1_000_000 <= budget <= PICTURE_BYTES
    large = _picture_bytes(n_points=50_000, n_pictures=5000)
    assert large + SHEET_BYTES + 50_000 * 60 + 5000 * 700 <= PAGE_BYTES
