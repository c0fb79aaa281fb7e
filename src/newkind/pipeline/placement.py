"""The one place that links, copies and moves a user's files.

Nothing is overwritten. A file is removed from its old place only when its content is in the new one, on disk. After a kill
at any moment, the same call finishes the work.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from newkind.atomic import make_folder, remove_leftover, replacing, sync_folder, write_errors
from newkind.errors import RunError
from newkind.runs.run_files import check_image_file

__all__ = ["MODES", "Placement", "place_files"]

MODES = ("symlink", "copy", "move")
CHUNK = 2**20
NO_HARD_LINKS = (errno.EPERM, errno.EACCES, errno.EMLINK, errno.ENOTSUP, errno.ENOSYS)


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


def place_files(plan: Sequence[Placement], mode: str, *, advance: Callable[[int], None]) -> int:
    """Place the files that are not in place yet. An obstacle is an error before the first file is placed.

    Parameters
    ----------
    plan : sequence of Placement
        Files and their targets; the targets are different.
    mode : {"symlink", "copy", "move"}
        How files are placed.
    advance : callable
        Called with the number of files that are in place.

    Returns
    -------
    int
        Number of files that were placed.

    Raises
    ------
    RunError
        With the code `exists` if something else is at a target, `missing-file` or `not-an-image` for a source that cannot be
        placed, `cannot-write`.
    """
    placer = {"symlink": _Linking, "copy": _Copying, "move": _Moving}[mode](plan)
    todo = []
    for item in plan:
        if placer.is_done(item):
            remove_leftover(item.target)
            advance(1)
        else:
            placer.check(item)
            todo.append(item)
    for item in todo:
        with write_errors(item.target, fix="Then repeat the command to resume."):
            make_folder(item.target.parent)
            placer.place(item)
        advance(1)
    return len(todo)


class _Linking:
    """Links to the files, by their absolute paths."""

    def __init__(self, plan: Sequence[Placement]) -> None:
        self.plan = plan
        self.entries = _Entries()

    def is_done(self, item: Placement) -> bool:
        target = _kind(item.target)
        return target == "link" and os.path.realpath(item.target) == os.path.realpath(item.source)

    def check(self, item: Placement) -> None:
        check_image_file(item.source)
        _check_free(item.target)

    def place(self, item: Placement) -> None:
        _link(os.path.realpath(item.source), item.target)


class _Copying(_Linking):
    """Copies. What is there already counts if it is a file with the same content, and not a link to the original."""

    def is_done(self, item: Placement) -> bool:
        return self.entries.of(item.source) == self.entries.of(item.target) or (
            _kind(item.target) == "file" and _same_content(item.source, item.target)
        )

    def place(self, item: Placement) -> None:
        _copy(item)


class _Moving(_Linking):
    """Moves. Of a file that is reached under two names, one is moved and the others count as done."""

    def __init__(self, plan: Sequence[Placement]) -> None:
        super().__init__(plan)
        self.targets: dict[str, Path] = {}
        for item in plan:
            self.targets.setdefault(self.entries.of(item.source), item.target)

    def is_done(self, item: Placement) -> bool:
        source = self.entries.of(item.source)
        if self.targets[source] != item.target or source == self.entries.of(item.target):
            return True
        return not _kind(item.source) and _kind(item.target) in ("file", "link")

    def check(self, item: Placement) -> None:
        if not self._leads_to_moved(item):
            check_image_file(item.source)
        if not self._has_arrived(item):
            _check_free(item.target)

    def place(self, item: Placement) -> None:
        if self._has_arrived(item):  # killed before the original was removed
            if _kind(item.target) == "file":
                _sync_file(item.target)
                remove_leftover(item.target)
        elif _kind(item.source) == "link":
            _link(self._destination(item), item.target)
        elif not _hard_link(item):
            if _rename(item):
                return
            _copy(item)
        item.source.unlink()

    def _has_arrived(self, item: Placement) -> bool:
        """Whether source and target both exist and are the same."""
        kinds = _kind(item.source), _kind(item.target)
        if kinds == ("link", "link"):
            return os.readlink(item.target) == self._destination(item)
        return kinds == ("file", "file") and _same_content(item.source, item.target)

    def _leads_to_moved(self, item: Placement) -> bool:
        """Whether the source is a link to a file that was moved in this or an earlier call."""
        return _kind(item.source) == "link" and _kind(Path(self._destination(item))) == "file"

    def _destination(self, item: Placement) -> str:
        """Absolute path that a moved link leads to: a relative one would be lost, and its file may be moved as well."""
        real = os.path.realpath(item.source)
        moved = self.targets.get(real)
        return real if moved is None else os.path.abspath(moved)


class _Entries:
    """Where files really are: two paths to one file, over a linked folder, have the same entry. Hard links have two."""

    def __init__(self) -> None:
        self._folders: dict[Path, str] = {}

    def of(self, path: Path) -> str:
        parent = path.parent
        if parent not in self._folders:
            self._folders[parent] = os.path.realpath(parent)
        return os.path.join(self._folders[parent], path.name)


def _kind(path: Path) -> str:
    """Return file, link or other, or an empty string if there is nothing."""
    try:
        mode = os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return ""
    return "link" if stat.S_ISLNK(mode) else "file" if stat.S_ISREG(mode) else "other"


def _check_free(target: Path) -> None:
    if os.path.lexists(target):
        raise RunError(
            f"{target} exists already and is something else. It was not changed.",
            fix="Use another `to` folder.",
            code="exists",
            file=target,
        )


def _same_content(one: Path, other: Path) -> bool:
    """Whether two files have the same bytes; one of them may be missing."""
    try:
        with open(one, "rb") as first, open(other, "rb") as second:
            if os.path.samestat(os.fstat(first.fileno()), os.fstat(second.fileno())):
                return True
            if os.fstat(first.fileno()).st_size != os.fstat(second.fileno()).st_size:
                return False
            while chunk := first.read(CHUNK):
                if chunk != second.read(CHUNK):
                    return False
            return not second.read(1)
    except FileNotFoundError:
        return False


def _link(destination: str, target: Path) -> None:
    """Create a link, durably."""
    os.symlink(destination, target)
    sync_folder(target.parent)


def _hard_link(item: Placement) -> bool:
    """Give a file its new name beside the old one; False if that is not possible. Unlike renaming, it never overwrites."""
    try:
        os.link(item.source, item.target)
    except OSError as problem:
        if problem.errno == errno.EXDEV or problem.errno in NO_HARD_LINKS:
            return False
        raise
    return True


def _rename(item: Placement) -> bool:
    """Rename on a file system without hard links; False if the target is on another one."""
    _check_free(item.target)
    try:
        item.source.rename(item.target)
    except OSError as problem:
        if problem.errno == errno.EXDEV:
            return False
        raise
    return True


def _copy(item: Placement) -> None:
    """Copy content, times and permissions, synced to disk before the copy gets its name."""
    with open(item.source, "rb") as source, replacing(item.target, overwrite=False) as target:
        before = os.fstat(source.fileno())
        shutil.copyfileobj(source, target, CHUNK)
        target.flush()
        after = os.fstat(source.fileno())
        if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
            raise RunError(
                f"{item.source} was changed while it was copied. It was not placed.",
                fix="Repeat the command to resume.",
                code="changed",
                file=item.source,
            )
        if os.utime in os.supports_fd:  # not on Windows
            shutil.copystat(item.source, target.fileno())  # type: ignore[arg-type]


def _sync_file(path: Path) -> None:
    with open(path, "rb") as file:
        os.fsync(file.fileno())
    sync_folder(path.parent)
