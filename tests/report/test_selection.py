"""Choice of the images in the page: all of them if the budget allows, otherwise a fair share of every category."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from newkind.data import ArrayImages
from newkind.report import selection
from newkind.report.contents import RunContents, read_contents
from newkind.report.images import RunImages
from newkind.report.selection import PAGE_BYTES, THUMBNAIL_BYTES, TILES, embed_images, thumbnail_budget
from newkind.runs.run import Run

MakeRun = Callable[..., Run]


def noisy(contents: RunContents, sizes: list[int]) -> tuple[RunContents, RunImages]:
    """Contents of categories of the given sizes, and images of noise, which take many bytes."""
    category = np.repeat(np.arange(len(sizes)), sizes).astype(np.int32)
    n = len(category)
    pixels = np.random.default_rng(0).integers(0, 255, (n, 48, 48, 3), dtype=np.uint8)
    contents = replace(contents, category=category, files=[str(i) for i in range(n)])
    return contents, RunImages(images=ArrayImages(pixels, contents.files), place=np.arange(n))


def test_every_image_can_be_seen_if_the_budget_allows(run: Run) -> None:
    contents, images = noisy(read_contents(run), [40, 7, 90, 1, 0])
    lines = np.arange(len(contents))
    found = embed_images(contents, images, [3, 50], lines)
    assert set(found.thumbnails) == {3, 50}
    assert set(found.sheets.slots) == set(range(138)) - {3, 50}
    assert found.count_by_category(contents, lines).tolist() == [40, 7, 90, 1, 0]


def test_small_categories_stay_complete_if_the_budget_is_small(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    contents, images = noisy(read_contents(run), [40, 7, 90, 1, 0])
    monkeypatch.setattr(selection, "MAX_TILES", 60)
    found = embed_images(contents, images, [], np.arange(len(contents)))
    counts = found.count_by_category(contents, np.arange(len(contents)))
    assert counts.tolist() == [26, 7, 26, 1, 0]


def test_the_budget_holds(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    contents, images = noisy(read_contents(run), [40, 7, 90, 1, 0])
    monkeypatch.setattr(selection, "TILES", replace(TILES, n_bytes=60_000))
    found = embed_images(contents, images, [], np.arange(len(contents)))
    assert 0 < len(found.sheets.slots) < 138
    assert sum(map(len, found.sheets.uris)) <= 60_000


def test_missing_images(run: Run) -> None:
    contents, images = noisy(read_contents(run), [4, 4, 4, 4, 0])
    images = replace(images, place=np.where(np.arange(16) % 2, -1, np.arange(16)))
    found = embed_images(contents, images, [0, 1], np.arange(16))
    assert set(found.thumbnails) | set(found.sheets.slots) == set(range(0, 16, 2))
    assert embed_images(contents, replace(images, images=None), [0, 1], np.arange(16)).thumbnails == {}


def test_thumbnails_leave_room_for_the_rest_of_the_page() -> None:
    assert thumbnail_budget(n_images=1000, n_thumbnails=300).n_bytes == THUMBNAIL_BYTES
    large = thumbnail_budget(n_images=50_000, n_thumbnails=3000).n_bytes
    assert large + TILES.n_bytes + 50_000 * 65 + 3000 * 700 <= PAGE_BYTES
    assert thumbnail_budget(n_images=50_000, n_thumbnails=100_000).n_bytes >= 1_000_000


def test_a_report_says_how_many_images_it_shows(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from newkind.report.write import write_report

    run = make_run(n_each=40)
    n_members = [len(lines) for lines in read_contents(run).members[:4]]
    text = write_report(run, out=tmp_path / "all.html").read_text()
    for n in n_members:
        assert f"Show all {n} images" in text
    monkeypatch.setattr(selection, "MAX_TILES", 20)
    text = write_report(run, out=tmp_path / "some.html").read_text()
    assert "Show all" not in text
    for n in n_members:
        assert f" of {n} images" in text
    assert "assignments.csv" in text
