"""Image files that a user names: single files, folders and lists."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from newkind.data.catalog import Skipped
from newkind.data.decoding import unsupported_format
from newkind.data.folder_walk import FolderWalk
from newkind.data.names import printable
from newkind.data.wording import count
from newkind.errors import DataError

__all__ = ["ImageFiles", "describe_ignored", "find_images", "ignored_files", "list_files", "no_images"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class ImageFiles:
    """Image files that were found.

    Parameters
    ----------
    names : tuple of str
        Paths of the image files, as given or below the given folders; a file that was given twice is listed twice.
    skipped : tuple of Skipped
        Files that cannot be used, with the reasons.
    ignored : mapping of str to int
        Number of files of other types, by suffix.
    """

    names: tuple[str, ...]
    skipped: tuple[Skipped, ...]
    ignored: Mapping[str, int]


def find_images(places: Sequence[Path]) -> ImageFiles:
    """Find image files.

    Parameters
    ----------
    places : sequence of Path
        Image files, folders that are searched to any depth, and .txt files that list one image file per line.

    Returns
    -------
    ImageFiles
        Names in the order of `places`; files that cannot be used are in `skipped`.

    Raises
    ------
    DataError
        If one of `places` does not exist (`missing-file`), or no image was found (`no-images`).

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name in ("a.jpg", "b.avif", "notes.txt"):
    ...     (folder / name).touch()
    >>> found = find_images([folder])
    >>> [Path(name).name for name in found.names], [Path(item.name).name for item in found.skipped]
    (['a.jpg'], ['b.avif'])
    >>> found.ignored
    {'.txt': 1}
    """
    names: list[str] = []
    skipped: list[Skipped] = []
    ignored: Counter[str] = Counter()
    for place in places:
        if os.path.isdir(place):
            walk = FolderWalk(place)
            names += [os.path.join(place, name) for name in walk.all_images()]
            skipped += [Skipped(os.path.join(place, item.name), item.reason, item.code) for item in walk.skipped]
            ignored += walk.ignored
        elif place.suffix.lower() == ".txt" and os.path.isfile(place):
            for name in _lines(place):
                problem = _problem(name, f"listed in {printable(str(place))}, but there is no such file")
                skipped += [problem] if problem else []
                names += [] if problem else [name]
        elif not os.path.lexists(place):
            raise DataError(f"{printable(str(place))} does not exist.", code="missing-file", path=str(place))
        elif problem := _problem(str(place), "broken symbolic link", code="broken-link"):
            skipped.append(problem)
        else:
            names.append(str(place))
    if not names:
        where = ", ".join(printable(str(place)) for place in places)
        raise no_images(f"There is no image in {where}", skipped, ignored)
    return ImageFiles(names=tuple(names), skipped=tuple(skipped), ignored=dict(ignored))


def list_files(places: Sequence[Path], *, missing_ok: bool = False) -> list[str]:
    """Image files to predict, in order, with those that cannot be read: each gets a result.

    Parameters
    ----------
    places : sequence of Path
        As in `find_images`.
    missing_ok : bool, default=False
        Whether a file that does not exist is listed, too. Those that a .txt file lists always are.

    Returns
    -------
    list of str

    Raises
    ------
    DataError
        If one of `places` does not exist (`missing-file`), or there is no image (`no-images`).
    """
    names: list[str] = []
    for place in places:
        if os.path.isdir(place):
            found = find_images([place])
            names += [*found.names, *(item.name for item in found.skipped)]
            if ignored := ignored_files(found.ignored):
                logger.info(f"Ignored in {printable(str(place))}: {ignored}.")
        elif place.suffix.lower() == ".txt" and os.path.isfile(place):
            names += _lines(place)
        elif missing_ok or os.path.lexists(place):
            names.append(str(place))
        else:
            raise DataError(f"{printable(str(place))} does not exist.", code="missing-file", path=str(place))
    if not names:
        raise DataError("There is nothing to predict.", fix="Name at least one image.", code="no-images")
    return names


def describe_ignored(ignored: Mapping[str, int]) -> str:
    """Counts of ignored files in words: `2 .txt, 1 hidden`."""
    return ", ".join(f"{n:,} {printable(kind)}" for kind, n in sorted(ignored.items(), key=lambda item: -item[1]))


def ignored_files(ignored: Mapping[str, int]) -> str:
    """Ignored files that are not hidden, in words: `3 other files (2 .txt, 1 .tar)`; empty for none."""
    visible = {kind: n for kind, n in ignored.items() if kind != "hidden"}
    return f"{count(sum(visible.values()), 'other file')} ({describe_ignored(visible)})" if visible else ""


def no_images(what: str, skipped: Sequence[Skipped], ignored: Mapping[str, int], fix: str = "") -> DataError:
    """Error for places without a usable image; says which files were skipped or ignored."""
    if skipped:
        first = skipped[0]
        what += f": {count(len(skipped), 'file')} skipped, such as {printable(first.name)} ({first.reason})"
    if ignored:
        what += (
            f"{',' if skipped else ':'} {count(sum(ignored.values()), 'file')} ignored ({describe_ignored(ignored)})"
        )
    return DataError(f"{what}.", fix=fix, code="no-images", n_skipped=len(skipped), ignored=dict(ignored))


def _lines(path: Path) -> Iterator[str]:
    """Names that a .txt file lists, one per line."""
    text = path.read_text(encoding="utf-8-sig", errors="surrogateescape")
    return (line.strip() for line in text.splitlines() if line.strip())


def _problem(name: str, missing: str, *, code: str = "missing-file") -> Skipped | None:
    """Reason why a file given by name cannot be used; its suffix does not have to be that of an image."""
    if not os.path.exists(name):
        return Skipped(name, missing, code)
    if not os.path.isfile(name):
        return Skipped(name, "not a regular file", "not-a-file")
    reason = unsupported_format(name)
    return Skipped(name, reason, "unsupported-format") if reason else None
