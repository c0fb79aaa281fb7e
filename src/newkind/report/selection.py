"""Choice of the images that are embedded in the page, within its budget of bytes.

Images that the page shows at once get a thumbnail. All others get a smaller tile, for the complete list of each category
and for the map.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from newkind.progress import progress_bar
from newkind.report.comparison import Comparison
from newkind.report.contents import RunContents
from newkind.report.gallery import CategoryDetails
from newkind.report.images import RunImages
from newkind.report.questionable import QuestionableImages
from newkind.report.since import Since
from newkind.report.thumbnails import Budget, Sheets, fit_budget, make_sheets, make_thumbnails

__all__ = ["EmbeddedImages", "embed_images", "important_lines", "thumbnail_budget"]

PAGE_BYTES = 14_500_000  # The file stays below 15 MB, which most mail servers accept.
THUMBNAIL_BYTES = 7_500_000
TILES = Budget(n_bytes=5_000_000, sides=(128, 112, 96, 80, 72, 64, 56, 48, 40), quality=55)
THUMBNAIL_SIDES = (192, 160, 128, 112, 96, 80, 64)
THUMBNAIL_QUALITY = 62
MAX_TILES = 8_000
BYTES_PER_IMAGE = 65  # Name, position, category and confidence of an image in the page's data.
BYTES_PER_THUMBNAIL = 700  # Markup around a thumbnail.


@dataclass(frozen=True)
class EmbeddedImages:
    """Images in the page.

    Parameters
    ----------
    thumbnails : dict of int to str
        Data URIs of thumbnails by row.
    sheets : Sheets
        Tiles of other rows.
    """

    thumbnails: dict[int, str] = field(default_factory=dict)
    sheets: Sheets = field(default_factory=Sheets)

    def count_by_category(self, contents: RunContents, lines: NDArray[np.int64]) -> NDArray[np.int64]:
        """Number of images in each category, of the rows `lines`, that the reader can see; shape (K,)."""
        seen = [line for line in lines.tolist() if line in self.thumbnails or line in self.sheets.slots]
        return np.bincount(contents.category[np.array(seen, dtype=np.int64)], minlength=len(contents.categories))


def important_lines(
    details: list[CategoryDetails],
    questionable: QuestionableImages,
    comparison: Comparison | None,
    since: Since | None = None,
) -> list[int]:
    """Rows that the page shows at once, the most important first: examples of every category, then the rest in turns.

    Parameters
    ----------
    details : list of CategoryDetails
        Categories on the page.
    questionable : QuestionableImages
        Images to check.
    comparison : Comparison or None
        Comparison with another run.
    since : Since or None, default=None
        What is new since the run that was continued.

    Returns
    -------
    list of int
    """
    wanted = _in_turns(each.examples[:3] for each in details)
    wanted += [line for growth in (since.grown if since else ()) for line in growth.lines]
    wanted += questionable.mislabelled + questionable.outliers + questionable.unsure + questionable.ambiguous
    wanted += [duplicates.lines[0] for duplicates in questionable.duplicates]
    wanted += [line for move in (comparison.moves if comparison else ()) for line in move.lines]
    wanted += _in_turns(each.typical + each.labelled for each in details)
    wanted += _in_turns(each.borderline for each in details)
    return list(dict.fromkeys(wanted))


def _in_turns(rows: Iterable[tuple[int, ...]]) -> list[int]:
    """Take the first of each, then the second of each, and so on."""
    return [line for turn in zip_longest(*rows) for line in turn if line is not None]


def embed_images(
    contents: RunContents, images: RunImages, important: Sequence[int], lines: NDArray[np.int64]
) -> EmbeddedImages:
    """Make thumbnails and tiles, as far as the budget allows.

    Parameters
    ----------
    contents : RunContents
        The run.
    images : RunImages
        Its images.
    important : sequence of int
        Rows that get thumbnails, the most important first.
    lines : ndarray of int64
        Rows that get tiles, unless they have thumbnails.

    Returns
    -------
    EmbeddedImages
    """
    source = images.images
    if source is None:
        return EmbeddedImages()

    def place(line: int) -> int:
        return int(images.place[line])

    wanted = [line for line in important if place(line) >= 0]
    others = np.setdiff1d(lines[images.place[lines] >= 0], np.array(wanted, dtype=np.int64))
    n_tiles = min(len(others), MAX_TILES)
    with progress_bar("Thumbnails", len(wanted) + n_tiles) as advance:
        budget = thumbnail_budget(n_images=len(lines), n_thumbnails=len(wanted))
        thumbnails = make_thumbnails(source, wanted, place, budget, advance=advance)
        fit = fit_budget(source, [place(line) for line in others.tolist()], n_tiles, TILES)
        chosen = _fair_choice(contents.category, others, fit.n_images)
        sheets = make_sheets(source, chosen, place, fit.side, TILES, advance=advance)
    return EmbeddedImages(thumbnails, sheets)


def thumbnail_budget(*, n_images: int, n_thumbnails: int) -> Budget:
    """Budget for thumbnails, which leaves room for tiles, the data of all images and the markup."""
    rest = PAGE_BYTES - TILES.n_bytes - BYTES_PER_IMAGE * n_images - BYTES_PER_THUMBNAIL * n_thumbnails
    return Budget(max(min(THUMBNAIL_BYTES, rest), 1_000_000), THUMBNAIL_SIDES, THUMBNAIL_QUALITY)


def _fair_choice(category: NDArray[np.int32], lines: NDArray[np.int64], most: int) -> list[int]:
    """Choose at most `most` rows, the same number from each category as far as it has them, sorted by category.

    From a category that has more, a random sample: it shows what the category is like.
    """
    order: NDArray[np.int64] = lines[np.argsort(category[lines], kind="stable")]
    if len(order) <= most:
        return [int(line) for line in order]
    groups = np.split(order, np.flatnonzero(np.diff(category[order])) + 1)
    share = _largest_share([len(group) for group in groups], most)
    rng = np.random.default_rng(0)
    return [line for group in groups for line in np.sort(rng.permutation(group)[:share]).tolist()]


def _largest_share(sizes: list[int], most: int) -> int:
    """Largest number c for which sum(min(size, c)) is at most `most`."""
    low, high = 0, max(sizes)
    while low < high:
        middle = (low + high + 1) // 2
        if sum(min(size, middle) for size in sizes) <= most:
            low = middle
        else:
            high = middle - 1
    return low
