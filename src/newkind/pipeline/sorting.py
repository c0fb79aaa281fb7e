"""`sort`: put the images of a run into one folder per category, by link, copy or move. Never overwrites; can be repeated."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Sequence
from pathlib import Path

from newkind.atomic import MAX_NAME
from newkind.pipeline.placement import MODES, Placement
from newkind.runs.assignments import Assignment
from newkind.runs.run_files import RunFiles

__all__ = ["MODES", "FreeNames", "Placement", "folder_name", "plan_sorting", "sorted_targets"]

APART = ("unsure", "junk")
"""Statuses of images that are not sorted into categories, and their folders."""
MAX_FOLDER = 200
"""Largest number of bytes in the name of a folder; leaves some for a number."""
MAX_SUFFIX = 16
RESERVED = {"con", "prn", "aux", "nul", *(f"{name}{i}" for name in ("com", "lpt") for i in "123456789¹²³")}
"""Names that no file can have on Windows, with any suffix."""


def plan_sorting(lines: list[Assignment], files: RunFiles, folder: Path) -> list[Placement]:
    """Plan where every file goes. A second file of the same name in a folder gets a number; unsure images share a folder,
    and so do junk images.

    Names are compared as some file systems do: without regard to case or to how accents are composed.

    Parameters
    ----------
    lines : list of Assignment
        Assignments of a run.
    files : RunFiles
        Where their files are.
    folder : Path
        Target folder.

    Returns
    -------
    list of Placement

    Raises
    ------
    RunError
        With the code `outside-root` for a file that the run may not touch.
    """
    sources = [files.path(line.file) for line in lines]
    targets = sorted_targets(lines, [source.name for source in sources], folder)
    return [Placement(source, target) for source, target in zip(sources, targets, strict=True)]


def sorted_targets(lines: Sequence[Assignment], names: Sequence[str], folder: Path) -> list[Path]:
    """Where files of these names go, one per line; see `plan_sorting`."""
    free, taken = FreeNames(), dict[Path, FreeNames]()
    folders = {(status, ""): folder / free.take(status) for status in APART if any(x.status == status for x in lines)}
    targets = []
    for line, name in zip(lines, names, strict=True):
        key = (line.status, "") if line.status in APART else ("", line.category)
        if key not in folders:
            folders[key] = folder / free.take(folder_name(line.category))
        targets.append(folders[key] / taken.setdefault(folders[key], FreeNames()).take_file(name))
    return targets


class FreeNames:
    """Gives each name once: a repeated one gets the next number before its suffix."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._next: dict[str, int] = {}

    def take(self, stem: str, suffix: str = "") -> str:
        """The name, or one with a number if it is taken; shortened if it would be too long."""
        name = first = _fitted(stem, suffix)
        number = self._next.get(_same(first), 2)
        while _same(name) in self._taken:
            name = _fitted(stem, f"-{number}{suffix}")
            number += 1
        self._next[_same(first)] = number
        self._taken.add(_same(name))
        return name

    def take_file(self, name: str) -> str:
        """As `take`, for the name of a file with its suffix."""
        return self.take(*_split(name))


def _same(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def _split(name: str) -> tuple[str, str]:
    stem, suffix = os.path.splitext(name)
    return (stem, suffix) if len(os.fsencode(suffix)) <= MAX_SUFFIX else (name, "")


def _fitted(stem: str, ending: str, most: int = MAX_NAME) -> str:
    """Stem and ending in at most so many bytes; characters at the end of the stem are left out."""
    while len(os.fsencode(stem + ending)) > most:
        stem = stem[:-1]
    return stem + ending


def folder_name(category: str) -> str:
    """Folder name of a category that is valid on every system and stays inside the target."""
    name = "".join("_" if _is_unusable(c) else c for c in category).strip(". ")
    stem, dot, rest = name.partition(".")
    if stem.strip().casefold() in RESERVED:
        name = f"{stem}_{dot}{rest}"
    return _fitted(name, "", MAX_FOLDER).strip(". ") or "_"


def _is_unusable(character: str) -> bool:
    """Whether a character cannot be in a name on some system: separators, control characters, lone surrogates."""
    code = ord(character)
    return character in '/\\:*?"<>|' or code < 32 or (0xD800 <= code <= 0xDFFF and not 0xDC80 <= code <= 0xDCFF)
