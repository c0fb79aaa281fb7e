"""`sort`: a run's images into one folder a category, by link, copy or move. Never overwrites, and can be repeated."""

from __future__ import annotations

import errno
import os
import shutil
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from newkind.errors import RunError
from newkind.runs.assignments import Assignment

__all__ = ["MODES", "Placement", "carry_out", "plan_sorting"]

MODES = ("symlink", "copy", "move")


@dataclass(frozen=True)
class Placement:
    """One file and where it goes."""

    source: Path
    target: Path


def plan_sorting(lines: list[Assignment], root: Path, folder: Path) -> list[Placement]:
    """Where every file would go. Names are kept; a second file of the same name in a category gets a number.

    Names count as the same as some file systems see them: without regard to case or to how accents are composed.
    """
    folders: dict[str, str] = {}
    taken: set[str] = set()
    plan = []
    for line in lines:
        if line.category not in folders:
            name = _free(_folder_name(line.category), {_same(other) for other in folders.values()})
            folders[line.category] = name
        source = root / line.file
        target = folder / folders[line.category] / source.name
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
    """Places the files that are not in place yet; gives their number. Whatever stands in the way is an error before a file moves."""
    todo = [item for item in plan if not _is_done(item, mode)]
    for item in todo:
        _check_free(item.target)
        if not item.source.exists():
            raise RunError(f"{item.source} is not there any more; nothing was touched.")
    advance(len(plan) - len(todo))
    for item in todo:
        try:
            item.target.parent.mkdir(parents=True, exist_ok=True)
            _check_free(item.target)  # nobody has put something there meanwhile
            if mode == "symlink":
                item.target.symlink_to(item.source.resolve())
            elif mode == "copy":
                _copy(item)
            else:
                _move(item)
        except OSError as error:
            raise RunError(
                f"{item.target} could not be made ({error.strerror}).",
                fix="Mend that and run the same command again: it goes on.",
            ) from None
        advance(1)
    return len(todo)


def _check_free(target: Path) -> None:
    if os.path.lexists(target):
        raise RunError(f"{target} exists already; it was not touched.", fix="Take another --to folder.")


def _copy(item: Placement) -> None:
    """Whole or not at all."""
    partial = item.target.with_name(item.target.name + ".partial")
    shutil.copy2(item.source, partial)
    partial.replace(item.target)


def _move(item: Placement) -> None:
    try:
        item.source.rename(item.target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _copy(item)  # to another disk: the original goes only after the copy is whole
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
    """A category's name as a folder that stays inside the target on every system."""
    name = "".join("_" if c in '/\\:*?"<>|' or ord(c) < 32 else c for c in category).strip(". ")
    return name or "_"
