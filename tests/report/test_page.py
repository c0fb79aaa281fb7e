"""The page: one file, everything escaped, each image once, and no other file is overwritten."""

import base64
import hashlib
import json
import logging
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

from error_codes import raises
from newkind.errors import RunError
from newkind.report.contents import read_contents
from newkind.report.page import ThumbnailPool, _breaks, _embed, anchors_of
from newkind.report.page_data import _common_folder
from newkind.report.write import try_report, write_report
from newkind.runs.run import REPORT_MARK, Run

SCRIPT = "<script>alert(1)</script>"
MakeRun = Callable[..., Run]


class Page(HTMLParser):
    """Tags and texts of a page."""

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


def test_nothing_is_fetched(page: Page) -> None:
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
    for tag, opening in (("style", "<style>"), ("script", '<script type="module">')):
        body = re.findall(rf"{opening}(.*?)</{tag}>", text, flags=re.DOTALL)
        assert len(body) == 1
        digest = base64.b64encode(hashlib.sha256(body[0].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


def test_names_are_escaped(page: Page) -> None:
    assert len(page.all("script")) == 2  # the data and the script
    assert f"{SCRIPT}.jpg" in [a.get("data-file") for a in page.all("button")]
    assert f"{SCRIPT}.jpg" in [a.get("alt") for a in page.all("img")]
    headings = [text for text in page.texts if text.strip() == SCRIPT]
    assert headings, "the category's name is shown as it is"


def test_each_thumbnail_is_in_the_file_once(page: Page) -> None:
    images = [a for a in page.all("img") if (a.get("src") or "").startswith("data:")]
    lines = [a["data-line"] for a in images]
    assert len(lines) == len(set(lines)) > 20
    duplicates = [a["data-copy"] for a in page.all("img") if "data-copy" in a]
    assert set(duplicates) <= set(lines)


def test_every_link_leads_somewhere(page: Page) -> None:
    places = {a["id"] for _, a in page.tags if "id" in a}
    assert {a["href"] for a in page.all("a")} <= {f"#{place}" for place in places}
    assert {"c-apple", "c-script-alert-1-script", "c-new-01", "c-new-02"} <= places
    ids = [a["id"] for _, a in page.tags if "id" in a]
    assert len(ids) == len(set(ids))


def test_new_categories_come_before_known_ones(text: str) -> None:
    order = [
        text.index(f'id="{name}"')
        for name in ("c-new-01", "c-new-02", "c-apple", "questionable", "map", "accuracy", "settings")
    ]
    assert order[0] < order[2] < order[3] < order[4] < order[5] < order[6]


def test_the_data_of_the_scripts(written: Run, text: str) -> None:
    found = re.search(r'<script type="application/json" id="page-data">(.*?)</script>', text, flags=re.DOTALL)
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
        assert (slots[line] >= 0) != (line in pictured), "a tile for those that have no thumbnail"


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


def test_a_thumbnail_is_handed_out_once() -> None:
    pool = ThumbnailPool({3: "data:x"})
    assert [pool.take(3), pool.take(3), pool.take(4)] == ["data:x", "", ""]
    assert pool.has(3)
    assert not pool.has(4)


@pytest.mark.parametrize(
    ("names", "prefix"),
    [(["a/b/1", "a/b/2"], "a/b/"), (["ab/1", "ac/1"], ""), (["a/b"], "a/"), ([], ""), (["x", "x"], "")],
)
def test_the_common_folder(names: list[str], prefix: str) -> None:
    assert _common_folder(names) == prefix


def test_a_report_replaces_a_report_and_nothing_else(run: Run, tmp_path: Path) -> None:
    assert write_report(run) == run.report_file
    before = run.report_file.read_bytes()
    assert REPORT_MARK.encode() in before[:400]
    write_report(run)  # again
    run.report_file.write_text("<html>my own notes</html>")
    with raises(RunError, "not-a-report"):
        write_report(run)
    assert run.report_file.read_text() == "<html>my own notes</html>"
    with raises(RunError, "report-folder-missing"):
        write_report(run, out=tmp_path / "nowhere" / "a.html")
    with raises(RunError, "report-not-writable"):
        write_report(run, out=tmp_path)
    assert write_report(run, out=tmp_path / "there.html").exists()


def test_a_failure_is_a_warning_at_the_end_of_a_run(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    run.scores_file.write_text("{")
    with caplog.at_level(logging.WARNING, logger="newkind"):
        assert try_report(run) is None
    assert f"newkind report {run.folder}" in caplog.text
    run.scores_file.unlink()
    assert try_report(run) == run.report_file


def test_runs_without_images_features_and_metrics(
    make_run: MakeRun, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bare = make_run("bare", truth=False)
    for file in (bare.features_file, bare.metrics_file, bare.environment_file):
        file.unlink()
    shutil.rmtree(tmp_path / "data")
    with caplog.at_level(logging.INFO, logger="newkind"):
        page = Page(write_report(bare).read_text())
    assert str(tmp_path / "data") in caplog.text
    assert not any((a.get("src") or "").startswith("data:") for a in page.all("img"))
    ids = {a.get("id") for _, a in page.tags}
    assert "map" in ids
    assert not ids & {"accuracy", "training"}
    assert not page.all("canvas")[1:]  # only that of the dialog
    assert "features.npy" in "".join(page.texts)
    assert not [a for a in page.all("details") if a.get("class") == "all-images"]


def test_folders_of_the_author_are_not_in_the_file(written: Run, make_run: MakeRun, many: Run) -> None:
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
    assert shown.count(name) >= 3  # index, section, a neighbour
    assert "new-01 has the most images" in shown
    assert _breaks("a_<b>/c.d 3.5") == "a_&lt;b&gt;/<wbr>c.<wbr>d 3.<wbr>5"


def test_the_median_where_no_image_is_certain_on_the_page(many: Run, written: Run) -> None:
    assert "half of the images have at least 40\u00a0%" in many.report_file.read_text()
    assert "of images have at least 80\u00a0%" in written.report_file.read_text()


def test_a_comparison_of_two_runs(make_run: MakeRun) -> None:
    first, second = make_run("a"), make_run("b", seed=1, wrong=3)
    page = Page(write_report(first, compare=second).read_text())
    shown = "".join(page.texts)
    assert "entropy weight" in shown
    assert "comparison" in {a.get("id") for _, a in page.tags}
    assert {a["href"] for a in page.all("a")} <= {f"#{a['id']}" for _, a in page.tags if "id" in a}


def test_runs_without_a_common_image_are_not_compared(make_run: MakeRun) -> None:
    """Not "0 (0.0 %)" moved images, but a plain statement."""
    first, second = make_run("a"), make_run("b", seed=1)
    renamed = re.sub(r"^[^,]*?(\d+-\d+)\.png", r"\1.tif", second.assignments_file.read_text(), flags=re.MULTILINE)
    second.assignments_file.write_text(renamed.replace("<script>alert(1)</script>.jpg", "x.tif"))
    page = Page(write_report(first, compare=second).read_text())
    shown = " ".join("".join(page.texts).split())
    assert "None of the 48 images of this run could be matched" in shown
    assert "in a different category" not in shown


def test_images_under_another_root_are_compared(make_run: MakeRun) -> None:
    first, second = make_run("a"), make_run("b", seed=1)
    second.assignments_file.write_text(second.assignments_file.read_text().replace("img/", "photos/img/"))
    shown = " ".join("".join(Page(write_report(first, compare=second).read_text()).texts).split())
    assert "Of 40 images that are unlabelled in both runs" in shown
    assert "matched by the end of the path" in shown


def test_accuracy_by_name_is_shown_if_the_run_has_it(run: Run, tmp_path: Path) -> None:
    scores = json.loads(run.scores_file.read_text())
    for by_name, n in (({"all": 0.123, "old": 0.234, "new": None}, 2), (None, 0)):
        run.write_json(run.scores_file, scores | {"by_name": by_name})
        text = write_report(run, out=tmp_path / "page.html").read_text()
        assert text.count("a known class counts only under its own name") == n
        assert ("12.3\u00a0% by name" in text) == bool(by_name)


def test_colours_of_the_accuracy_section_have_one_meaning(text: str) -> None:
    """Orange is new and blue is known; the true sizes of classes and all images together have neither colour."""
    section = text[text.index('id="accuracy"') : text.index('id="training"')]
    kinds = re.findall(r'<path class="line (\w+)"', section)
    assert kinds == ["true", "known", "true", "new"]
    tiles = re.findall(r'<div class="tile (\w*)"><b>[^<]*</b><span>(All|Old|New)</span>', section)
    assert tiles == [("", "All"), ("known", "Old"), ("new", "New")]
