"""Write the report of a run: read it, choose images, draw the map, and write one HTML file."""

from __future__ import annotations

import datetime
import logging
from pathlib import Path

from newkind.data import Collection
from newkind.data.wording import shell_quoted
from newkind.errors import RunError
from newkind.progress import duration
from newkind.report.accuracy import accuracy_details
from newkind.report.charts import bars
from newkind.report.comparison import compare_runs
from newkind.report.contents import RunContents, read_contents
from newkind.report.gallery import CategoryDetails, category_details, gallery_sizes
from newkind.report.headline import CERTAIN, headline_of
from newkind.report.images import RunImages, find_run_images
from newkind.report.map import ImageMap, make_map, map_seconds
from newkind.report.page import anchors_of, render
from newkind.report.page_data import data_lines, page_data
from newkind.report.provenance import estimate_panel, metric_panels, settings_tables, title_of
from newkind.report.questionable import find_questionable
from newkind.report.rescore import rescored
from newkind.report.selection import embed_images, important_lines
from newkind.report.since import since_of
from newkind.runs.run import REPORT_MARK, Run

__all__ = ["try_report", "write_report"]

logger = logging.getLogger(__name__)
MAX_SKIPPED = 200
SLOW_MAP = 3.0  # A message announces a map that takes more seconds than this.


def write_report(
    run: Run,
    *,
    contents: RunContents | None = None,
    collection: Collection | None = None,
    data: Path | None = None,
    out: Path | None = None,
    compare: Run | None = None,
) -> Path:
    """Write the report of a finished run as one HTML file.

    Parameters
    ----------
    run : Run
        A finished run.
    contents : RunContents, default=None
        Results of the run, if they are in memory (see `contents_of`). Default: read from the run folder.
    collection : Collection, default=None
        Data of the run, if it is open already. Default: opened again from `data`, or from where the run found it.
    data : Path, default=None
        Folder that contains the images now, if they were moved since the run.
    out : Path, default=None
        File to write. Default: report.html in the run folder. An existing file is replaced only if it is a report.
    compare : Run, default=None
        Another finished run to compare with.

    Returns
    -------
    Path
        The file that was written.

    Raises
    ------
    RunError
        If the run is not finished or damaged, or if `out` cannot be written or is not a report.
    DataError
        If `data` does not exist.
    """
    target = out or run.report_file
    _check_target(target)
    contents = contents or read_contents(run)
    other = None if compare is None else read_contents(compare)
    images = find_run_images(contents, collection=collection, data=data)
    contents = rescored(contents, images)
    if images.note:
        logger.info(f"{images.note} Searched in {images.searched}." if images.searched else images.note)
    text = _make_page(contents, images, other)
    _check_target(target)  # the page took a while; another file may be there now
    run.write_text(target, text)
    return target


def try_report(run: Run, *, contents: RunContents | None = None, collection: Collection | None = None) -> Path | None:
    """Write the report at the end of a run; any failure becomes a warning, because the run itself is complete.

    Parameters
    ----------
    run : Run
        A finished run.
    contents : RunContents, default=None
        As in `write_report`.
    collection : Collection, default=None
        As in `write_report`.

    Returns
    -------
    Path or None
        The file that was written, or None if that failed.
    """
    try:
        return write_report(run, contents=contents, collection=collection)
    except Exception as error:  # noqa: BLE001 - the run is finished and safe; only its report is missing
        reason = str(error) or type(error).__name__
        logger.warning(
            f"The run is complete, but its report could not be written ({reason}). "
            f"To try again: newkind report {shell_quoted(str(run.folder))}"
        )
        return None


def _check_target(target: Path) -> None:
    """Raise RunError unless `target` is a report or a new file in an existing folder."""
    try:
        with open(target, "rb") as file:
            is_report = REPORT_MARK.encode() in file.read(4096)
    except FileNotFoundError:
        if target.parent.is_dir():
            return
        raise RunError(
            f"The folder {target.parent} does not exist.",
            fix="Create it, or choose another `out`.",
            code="report-folder-missing",
            folder=target.parent,
        ) from None
    except OSError as error:
        raise RunError(
            f"{target} cannot be written ({error.strerror}).",
            fix="Choose another `out`.",
            code="report-not-writable",
            file=target,
        ) from None
    if not is_report:
        raise RunError(
            f"{target} exists and is not a Newkind report; it was not changed.",
            fix="Choose another `out`.",
            code="not-a-report",
            file=target,
        )


def _make_page(contents: RunContents, images: RunImages, other: RunContents | None) -> str:
    """Compute all parts of the page and render it."""
    details = category_details(contents, images, gallery_sizes(len(contents.shown)))
    questionable = find_questionable(contents, images)
    comparison = None if other is None else compare_runs(contents, other, images)
    since = since_of(contents)
    image_map = _image_map(contents)
    lines = data_lines(contents, image_map)
    embedded = embed_images(contents, images, important_lines(details, questionable, comparison, since), lines)
    anchors = anchors_of(contents)
    is_new = {k: contents.categories[k].status == "new" for k in contents.shown}
    return render(
        contents,
        embedded.thumbnails,
        anchors,
        title=title_of(contents),
        headline=headline_of(contents),
        certain=CERTAIN,
        new_details=[each for each in details if is_new[each.number]],
        known_details=[each for each in details if not is_new[each.number]],
        details_of={each.number: each for each in details},
        visible=embedded.count_by_category(contents, lines),
        size_bars=bars([_size_bar(contents, each) for each in details], width=720, height=120),
        questionable=questionable,
        skipped=images.skipped[:MAX_SKIPPED],
        n_skipped=len(images.skipped),
        images_note=images.note,
        is_first_answer=contents.config.get("answer") == "first",
        image_map=image_map,
        page_data=page_data(contents, lines, image_map, embedded.sheets, anchors),
        accuracy=accuracy_details(contents, images),
        metric_panels=metric_panels(contents.metrics),
        estimate=estimate_panel(contents),
        settings_tables=settings_tables(contents),
        comparison=comparison,
        since=since,
        written=datetime.datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
    )


def _image_map(contents: RunContents) -> ImageMap | None:
    """Return the map; None for a run without features."""
    if contents.features is None or not len(contents):
        return None
    seconds = map_seconds(len(contents))
    if seconds > SLOW_MAP:
        logger.info(f"Computing the map of {len(contents):,} images, about {duration(seconds)}.")
    return make_map(contents.features, contents.category)


def _size_bar(contents: RunContents, details: CategoryDetails) -> tuple[float, str, str]:
    category = contents.categories[details.number]
    kind = "new" if category.status == "new" else "known"
    return float(details.n_unlabelled), kind, f"{category.name}: {details.n_unlabelled:,}"
