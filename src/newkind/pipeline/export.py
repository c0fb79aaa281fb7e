"""`sort`: put the images of a run into one folder per category, by link, copy or move. Never overwrites; can be repeated."""

from __future__ import annotations

import errno
import os
import shutil
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from newkind.atomic import replacing, write_errors
from newkind.errors import RunError
from newkind.runs.assignments import Assignment

__all__ = ["MODES", "Placement", "carry_out", "plan_sorting"]

MODES = ("symlink", "copy", "move")
APART = ("unsure", "junk")
"""Statuses of images that are not sorted into categories, and their folders."""


@dataclass(frozen=True)
class Placement:
    """A file and its target.

    Parameters
    ----------
    source : Path
        The file.
    target : Path
        Where it is put.
    """

    source: Path
    target: Path


def plan_sorting(lines: list[Assignment], root: Path, folder: Path) -> list[Placement]:
    """Plan where every file goes. A second file of the same name in a folder gets a number; unsure images share a folder,
    and so do junk images.

    Names are compared as some file systems do: without regard to case or to how accents are composed.

    Parameters
    ----------
    lines : list of Assignment
        Assignments of a run.
    root : Path
        Folder that their file names are relative to.
    folder : Path
        Target folder.

    Returns
    -------
    list of Placement
    """
    folders = {(status, ""): status for status in APART if any(line.status == status for line in lines)}
    taken: set[str] = set()
    plan = []
    for line in lines:
        key = (line.status, "") if line.status in APART else ("", line.category)
        if key not in folders:
            folders[key] = _free(_folder_name(line.category), {_same(other) for other in folders.values()})
        source = root / line.file
        target = folder / folders[key] / source.name
        number = 2
        while _same(str(target)) in taken:
            target = target.with_name(f"{source.stem}-{number}{source.suffix}")
            number += 1
        taken.add(_same(str(target)))
        plan.append(Placement(source, target))
    return plan


def _same(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def _free(name: str, taken: set[str]) -> str:
    number, free = 2, name
    while _same(free) in taken:
        free = f"{name}-{number}"
        number += 1
    return free


def carry_out(plan: list[Placement], mode: str, *, advance: Callable[[int], None]) -> int:
    """Place the files that are not in place yet. An obstacle is an error before the first file is moved.

    Parameters
    ----------
    plan : list of Placement
        As from `plan_sorting`.
    mode : {"symlink", "copy", "move"}
        How files are placed.
    advance : callable
        Called with the number of files that are in place.

    Returns
    -------
    int
        Number of files that were placed.
    """
    todo = [item for item in plan if not _is_done(item, mode)]
    for item in todo:
        _check_free(item.target)
        if not item.source.exists():
            raise RunError(
                f"{item.source} does not exist any more. Nothing was changed.",
                fix="Name the folder that the images are in now with `data`.",
                code="missing-file",
                file=item.source,
            )
    advance(len(plan) - len(todo))
    for item in todo:
        with write_errors(item.target, fix="Repeat the command to resume."):
            item.target.parent.mkdir(parents=True, exist_ok=True)
            _check_free(item.target)  # in case it was created in the meantime
            if mode == "symlink":
                item.target.symlink_to(item.source.resolve())
            elif mode == "copy":
                _copy(item)
            else:
                _move(item)
        advance(1)
    return len(todo)


def _check_free(target: Path) -> None:
    if os.path.lexists(target):
        raise RunError(
            f"{target} exists already. It was not changed.", fix="Use another `to` folder.", code="exists", file=target
        )


def _copy(item: Placement) -> None:
    """Copy atomically."""
    with replacing(item.target) as partial:
        shutil.copy2(item.source, partial)


def _move(item: Placement) -> None:
    try:
        item.source.rename(item.target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _copy(item)  # to another disk: the original is removed only after the copy is complete
        item.source.unlink()


def _is_done(item: Placement, mode: str) -> bool:
    if mode == "symlink":
        return item.target.is_symlink() and item.target.resolve() == item.source.resolve()
    if mode == "copy":
        return (
            item.target.is_file() and item.source.is_file() and item.target.stat().st_size == item.source.stat().st_size
        )
    return item.target.is_file() and not item.source.exists()


def _folder_name(category: str) -> str:
    """Folder name of a category that is valid on every system and stays inside the target."""
    name = "".join("_" if c in '/\\:*?"<>|' or ord(c) < 32 else c for c in category).strip(". ")
    return name or "_"
