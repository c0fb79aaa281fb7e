"""Images of a run that continues another one: which ones are known, new or missing. Images are recognised by their content."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from newkind.backbone.cache_plan import image_digests
from newkind.config import from_json
from newkind.data import Collection, Skipped, open_data
from newkind.data.added import add_images, select_images
from newkind.data.names import printable
from newkind.data.wording import count
from newkind.errors import DataError, NewkindError, RunError
from newkind.reading import ReadingConfig
from newkind.runs.answer import Answer
from newkind.runs.current_answer import current_answer
from newkind.runs.image_match import match_images
from newkind.runs.run import Run

__all__ = ["ContinuedImages", "open_continued"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class ContinuedImages:
    """The n images of a run that continues another one.

    Parameters
    ----------
    collection : Collection
        Image files.
    digests : list of bytes, length n
        Digests of their contents.
    row : ndarray of int64, shape (n,)
        Row of each image in the run before; -1 for a new image.
    before : Answer
        Current answer of the run before.
    missing : tuple of str
        Images of the run before whose content is not there any more.
    added : tuple of str
        Folders and tables that were added to the data, of earlier runs as well.
    n_copies : int
        Number of added files that were left out, because their content is there already.
    """

    collection: Collection
    digests: list[bytes]
    row: NDArray[np.int64]
    before: Answer
    missing: tuple[str, ...]
    added: tuple[str, ...]
    n_copies: int = 0

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.digests)

    @property
    def names(self) -> list[str]:
        """Names of the images."""
        return list(self.collection.catalog.items.names)

    @property
    def new(self) -> NDArray[np.int64]:
        """Numbers of the new images."""
        return np.flatnonzero(self.row < 0)

    def take(self, kept: NDArray[np.int64]) -> ContinuedImages:
        """Some of the images, in this order."""
        digests = [self.digests[i] for i in kept.tolist()]
        return replace(
            self, collection=select_images(self.collection, kept.tolist()), digests=digests, row=self.row[kept]
        )

    def sentence(self) -> str:
        """What was recognised, in words."""
        parts = [f"{count(len(self) - len(self.new), 'image')} known", f"{len(self.new):,} new"]
        parts += [f"{len(self.missing):,} missing"] if self.missing else []
        copies = f" {count(self.n_copies, 'added file')} left out as copies of others." if self.n_copies else ""
        return f"{', '.join(parts)}.{copies}"


def open_continued(
    run: Run,
    *,
    data: str | os.PathLike[str] | None = None,
    add: Sequence[str | os.PathLike[str]] = (),
    reading: Mapping[str, Any] | None = None,
) -> ContinuedImages:
    """Open the data of a run again, with more images, and recognise those that the run has.

    Parameters
    ----------
    run : Run
        A finished run.
    data : str or path-like, optional
        The data of the run, if it was moved. Default: where the run read it.
    add : sequence of str or path-like, default=()
        Folders of unlabelled images, or tables, as in `add_images`.
    reading : mapping of str to Any, optional
        Options of `open_data` that differ from those that the run was read with, such as a moved `image_folder`.

    Returns
    -------
    ContinuedImages

    Raises
    ------
    RunError
        With the code `not-finished` if the run is not finished, or `unreadable`.
    DataError
        With the code `not-images` for a run from features, or as from `add_images`.
    """
    if run.answer != "final":
        raise RunError(
            f"{run.folder} is not finished.",
            fix="Repeat the discover command that started it.",
            code="not-finished",
            folder=run.folder,
        )
    before, config = current_answer(run), run.config()
    if config.get("root") is None:
        raise DataError(f"{run.folder} was not made from image files, so it cannot be continued.", code="not-images")
    base = open_data(data if data is not None else str(config["data"]), **_reading(run) | dict(reading or {}))
    places = _places(config.get("added", []), add)
    joined = add_images(base, places)
    _warn_of_missing_places(config.get("added", []))
    digests = image_digests(joined)
    kept, n_copies = _without_copies(digests, n_base=len(base.catalog))
    skipped = [Skipped(joined.catalog.items.names[i], "cannot be read") for i, d in enumerate(digests) if not d]
    joined = replace(joined, skipped=(*joined.skipped, *skipped))
    found = ContinuedImages(joined, digests, np.full(len(digests), -1), before, (), tuple(places), n_copies).take(kept)
    return _matched(run, found)


def _reading(run: Run) -> dict[str, Any]:
    """Options that the data of a run was read with. Runs of earlier versions have none."""
    try:
        return from_json(ReadingConfig, run.config().get("reading", {})).given()
    except (NewkindError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise RunError(
            f"{run.config_file} has unknown options for reading ({error}).", code="unreadable", file=run.config_file
        ) from None


def _places(earlier: Sequence[str], add: Sequence[str | os.PathLike[str]]) -> list[str]:
    """Places to add: those of earlier runs that are still there, then the others, as absolute paths."""
    there = [place for place in earlier if os.path.lexists(place)]
    known = {os.path.realpath(place) for place in there}
    return there + [os.path.abspath(place) for place in add if os.path.realpath(place) not in known]


def _warn_of_missing_places(earlier: Sequence[str]) -> None:
    """Warn of places that were added to an earlier run and do not exist any more."""
    for place in earlier:
        if not os.path.lexists(place):
            logger.warning(f"{printable(place)}, which was added to the run before, does not exist any more.")


def _without_copies(digests: Sequence[bytes], *, n_base: int) -> tuple[NDArray[np.int64], int]:
    """Numbers of the images that are used: readable ones, without added files that have the content of another one."""
    seen: set[bytes] = set()
    kept, n_copies = [], 0
    for i, digest in enumerate(digests):
        is_copy = i >= n_base and digest in seen
        n_copies += is_copy and bool(digest)
        if digest and not is_copy:
            kept.append(i)
            seen.add(digest)
    return np.array(kept, dtype=np.int64), n_copies


def _matched(run: Run, images: ContinuedImages) -> ContinuedImages:
    """The images with their rows in the run before, and the images that are missing."""
    before, known = images.before, run.digests()
    if known is None or len(known) != len(before):
        logger.info(f"{run.folder} has no digests of its images; they are recognised by their paths.")
        number = {name: i for i, name in enumerate(images.names)}
        known = [images.digests[number[name]] if name in number else b"" for name in before.files]
    row = match_images(images.names, images.digests, before.files, known)
    if (row < 0).all():
        raise DataError(
            f"None of the images of {run.folder} was found.",
            fix="Name the folder that contains them now as the data.",
            code="no-known-images",
            folder=run.folder,
        )
    there = set(images.digests)
    missing = tuple(name for name, digest in zip(before.files, known, strict=True) if digest not in there)
    return replace(images, row=row, missing=missing)
