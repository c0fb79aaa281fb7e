"""`report`: a run folder to one page. Reads, chooses, makes thumbnails and a map, and writes the file as a whole."""

from __future__ import annotations

import datetime
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import numpy as np

from newkind.data import Collection
from newkind.errors import RunError
from newkind.progress import duration, progress_bar
from newkind.report.accuracy import verdict_of
from newkind.report.charts import bars
from newkind.report.comparison import Comparison, compare_runs
from newkind.report.contents import RunContents, read_contents
from newkind.report.gallery import Chapter, amounts_for, chapters_of
from newkind.report.headline import SURE, headline_of
from newkind.report.images import Pictures, find_pictures
from newkind.report.map import Atlas, lay_out, map_seconds
from newkind.report.page import MARK, Album, anchors_of, map_data, render
from newkind.report.provenance import curves_of, estimate_panel, facts_of, title_of
from newkind.report.questionable import Copies, find_copies, lines_between, mislabelled_lines
from newkind.report.thumbnails import SHEET_SIDES, Sheets, make_sheets, make_thumbnails
from newkind.runs.run import Run

__all__ = ["try_report", "write_report"]

logger = logging.getLogger(__name__)
PAGE_BYTES, PICTURE_BYTES, SHEET_BYTES = 14_500_000, 9_000_000, 3_600_000
"""What the page, its thumbnails and the map's tiny pictures may take up, so that the file stays under 15 MB."""
MAX_SHEET_PICTURES = 6_000
MANY_DOUBTS = 36
MANY_COPIES = 40
MANY_FILES = 200


def write_report(
    run: Run,
    *,
    collection: Collection | None = None,
    data: Path | None = None,
    out: Path | None = None,
    compare: Run | None = None,
    contents: RunContents | None = None,
) -> Path:
    """Write the report of a finished run as one HTML file.

    Parameters
    ----------
    run : Run
        A finished run.
    collection : Collection, default=None
        Data of the run, if it is open already. Default: opened again from `data` or from where the run found it.
    data : Path, default=None
        Folder that contains the images now, if they were moved.
    out : Path, default=None
        File to write. Default: report.html in the run folder. An existing file is replaced only if it is a report.
    compare : Run, default=None
        Another finished run to compare with.
    contents : RunContents, default=None
        Results of the run, from `contents_of`, if they are in memory. Default: read from the run folder.

    Returns
    -------
    Path
        The file that was written.

    Raises
    ------
    RunError
        If the run is not finished or damaged, or `out` cannot be written or is not a report.
    DataError
        If `data` does not exist.
    """
    target = out or run.report_file
    _check_target(target)
    contents = contents or read_contents(run)
    other = None if compare is None else read_contents(compare)
    pictures = find_pictures(contents, collection=collection, data=data)
    if pictures.note:
        logger.info(f"{pictures.note} Looked in {pictures.missing_from}." if pictures.missing_from else pictures.note)
    text = _tell(contents, pictures, other)
    _check_target(target)  # nobody has put something there meanwhile
    run.write_text(target, text)
    return target


def try_report(
    run: Run,
    *,
    collection: Collection | None = None,
    contents: RunContents | None = None,
) -> Path | None:
    """As `write_report`, for the end of a run that must not be lost: whatever goes wrong becomes a sentence, and None."""
    try:
        return write_report(run, collection=collection, contents=contents)
    except Exception as error:  # noqa: BLE001 - the run is finished and safe; only its picture is missing
        reason = str(error) or type(error).__name__
        logger.info(
            f"The run is complete, but its report could not be made ({reason}). Try: newkind report {run.folder}"
        )
        return None


def _check_target(target: Path) -> None:
    """Only a report of ours is ever replaced."""
    try:
        with open(target, "rb") as file:
            ours = MARK.encode() in file.read(4096)
    except FileNotFoundError:
        if target.parent.is_dir():
            return
        raise RunError(f"There is no folder {target.parent}.", fix="Make it, or take another --out.") from None
    except OSError as error:
        raise RunError(f"{target} cannot be written ({error.strerror}).", fix="Take another --out.") from None
    if not ours:
        raise RunError(f"{target} exists and is not a Newkind report; it was not touched.", fix="Take another --out.")


@dataclass(frozen=True, kw_only=True)
class _Doubts:
    """What deserves a second look."""

    n_between: int
    between: list[int]
    n_mislabelled: int
    mislabelled: list[int]
    n_copies: int
    copies: list[Copies]


def _tell(
    contents: RunContents,
    pictures: Pictures,
    other: RunContents | None,
) -> str:
    """All parts of the page, and the page."""
    chapters = chapters_of(contents, pictures, amounts_for(len(contents.shown)))
    doubts = _doubts(contents, pictures)
    comparison = None if other is None else compare_runs(contents, other, pictures)
    atlas = _map(contents)
    album, sheets = _pictures(pictures, _wanted(chapters, doubts, comparison), atlas)
    anchors = anchors_of(contents)
    sizes = bars([_size_bar(contents, c) for c in sorted(chapters, key=lambda c: -c.n_sorted)], width=720, height=120)
    return render(
        contents,
        album,
        anchors,
        title=title_of(contents),
        headline=headline_of(contents),
        sure_from=SURE,
        chapters=chapters,
        by_number={chapter.number: chapter for chapter in chapters},
        kinds={
            "new": {c.number for c in chapters if contents.categories[c.number].status == "new"},
            "known": {c.number for c in chapters if contents.categories[c.number].status != "new"},
        },
        sizes=sizes,
        doubts=doubts,
        skipped=pictures.skipped[:MANY_FILES],
        n_skipped=len(pictures.skipped),
        pictures_note=pictures.note,
        atlas=atlas,
        map_data=None if atlas is None else map_data(contents, atlas, sheets, anchors),
        verdict=verdict_of(contents, pictures),
        curves=curves_of(contents.metrics),
        estimate=estimate_panel(contents),
        facts=facts_of(contents),
        comparison=comparison,
        written=datetime.datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
    )


def _doubts(contents: RunContents, pictures: Pictures) -> _Doubts:
    between, mislabelled, copies = lines_between(contents), mislabelled_lines(contents), find_copies(contents, pictures)
    return _Doubts(
        n_between=len(between),
        between=between[:MANY_DOUBTS].tolist(),
        n_mislabelled=len(mislabelled),
        mislabelled=mislabelled[:MANY_DOUBTS].tolist(),
        n_copies=len(copies),
        copies=copies[:MANY_COPIES],
    )


def _map(contents: RunContents) -> Atlas | None:
    """None for a run that kept no features."""
    if contents.features is None or not len(contents):
        return None
    if map_seconds(len(contents)) > 3:
        logger.info(f"Drawing the map of {len(contents):,} images (about {duration(map_seconds(len(contents)))}).")
    return lay_out(contents.features, contents.category)


def _wanted(chapters: list[Chapter], doubts: _Doubts, comparison: Comparison | None) -> list[int]:
    """Lines whose pictures the page shows, the most important first: a face for every category, then the rest in turns."""
    rows = [chapter.typical or chapter.labelled for chapter in chapters]
    wanted: list[int] = [row[0] for row in rows if row]
    wanted += doubts.mislabelled + doubts.between
    wanted += [copies.lines[0] for copies in doubts.copies]
    wanted += [line for move in (comparison.moves if comparison else ()) for line in move.lines]
    wanted += _in_turns(chapter.typical + chapter.labelled for chapter in chapters)
    wanted += _in_turns(chapter.borderline for chapter in chapters)
    return list(dict.fromkeys(wanted))


def _in_turns(rows: Iterable[tuple[int, ...]]) -> list[int]:
    return [line for turn in zip_longest(*rows) for line in turn if line is not None]


def _pictures(pictures: Pictures, wanted: list[int], atlas: Atlas | None) -> tuple[Album, Sheets]:
    """Thumbnails for what the page shows, and tiny ones for the map's other images."""
    images = pictures.images
    if images is None:
        return Album({}), Sheets(SHEET_SIDES[0])

    def place(line: int) -> int:
        return int(pictures.place[line])

    there = [line for line in wanted if place(line) >= 0]
    on_map = [line for line in ([] if atlas is None else atlas.lines.tolist()) if place(line) >= 0]
    total = len(there) + min(len(set(on_map) - set(there)), MAX_SHEET_PICTURES)
    with progress_bar("Pictures", total) as advance:
        budget = _picture_bytes(n_points=len(on_map), n_pictures=len(there))
        thumbnails = make_thumbnails(images, there, place, budget=budget, advance=advance)
        others = [line for line in on_map if line not in thumbnails]
        chosen = np.linspace(0, len(others) - 1, min(len(others), MAX_SHEET_PICTURES)).astype(int)
        sheets = make_sheets(images, [others[i] for i in chosen], place, budget=SHEET_BYTES, advance=advance)
    return Album(thumbnails), sheets


def _picture_bytes(*, n_points: int, n_pictures: int) -> int:
    """What is left for thumbnails beside the map (a point with its name: about 60 bytes) and the markup around each picture."""
    return max(min(PICTURE_BYTES, PAGE_BYTES - SHEET_BYTES - 60 * n_points - 700 * n_pictures), 1_000_000)


def _size_bar(contents: RunContents, chapter: Chapter) -> tuple[float, str, str]:
    category = contents.categories[chapter.number]
    return float(chapter.n_sorted), category.status, f"{category.name}: {chapter.n_sorted:,}"
