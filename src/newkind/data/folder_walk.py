"""Walk below a folder: which files are images, which are skipped and why, and which are ignored."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from newkind.data.catalog import Skipped
from newkind.data.decoding import has_image_suffix, unsupported_format
from newkind.data.names import printable
from newkind.errors import DataError

__all__ = ["FolderWalk", "has_images_below"]

SYSTEM_FILES = frozenset({"thumbs.db", "desktop.ini", "icon\r"})


class FolderWalk:
    """Walk below a folder in sorted order that follows symbolic links, but reads no folder twice.

    `skipped` and `ignored` collect what was passed over. Names are relative to the root of the walk.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.ignored: Counter[str] = Counter()
        self._prefix = len(os.path.join(root, ""))
        self._skipped: dict[str, Skipped] = {}
        self._above: set[tuple[int, int]] = set()
        real = Path(os.path.realpath(root))
        for folder in (real, *real.parents):
            with suppress(OSError):
                self._above.add(_identity(folder))

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """Files and folders that cannot be used, each once."""
        return tuple(self._skipped.values())

    def skip(self, path: str, reason: str, code: str) -> None:
        """Add a path to `skipped`, unless it is there already."""
        name = path[self._prefix :]
        self._skipped.setdefault(name, Skipped(name, reason, code))

    def entries(self, folder: str | Path) -> list[os.DirEntry[str]]:
        """Entries of a folder, sorted by name, without hidden ones."""
        try:
            with os.scandir(folder) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError as error:
            if folder is self.root:
                raise DataError(
                    f"The folder {printable(str(folder))} cannot be read ({error.strerror}).",
                    code="unreadable",
                    path=str(folder),
                ) from None
            self.skip(str(folder), f"folder cannot be read ({error.strerror})", "unreadable")
            return []
        visible = [entry for entry in entries if not _is_hidden(entry.name)]
        if len(visible) < len(entries):
            self.ignored["hidden"] += len(entries) - len(visible)
        return visible

    def is_folder(self, entry: os.DirEntry[str]) -> bool:
        """Whether an entry is a folder, or a link to one."""
        try:
            return entry.is_dir()
        except OSError:
            return False

    def is_image(self, entry: os.DirEntry[str]) -> bool:
        """Whether an entry is an image file; otherwise it is skipped or ignored."""
        suffix = os.path.splitext(entry.name)[1].lower()
        try:
            if not entry.is_file():
                if os.path.exists(entry.path):
                    self.skip(entry.path, "not a regular file", "not-a-file")
                else:
                    self.skip(entry.path, "broken symbolic link", "broken-link")
                return False
        except OSError as error:
            self.skip(entry.path, f"cannot be read ({error.strerror})", "unreadable")
            return False
        if has_image_suffix(entry.name):
            return True
        if reason := unsupported_format(entry.name):
            self.skip(entry.path, reason, "unsupported-format")
        else:
            self.ignored[suffix or "no suffix"] += 1
        return False

    def all_images(self) -> Iterator[str]:
        """Names of all images below the root."""
        for entry in self.entries(self.root):
            if self.is_folder(entry):
                yield from self.images(entry.path)
            elif self.is_image(entry):
                yield entry.name

    def images(self, folder: str) -> Iterator[str]:
        """Names of all images below a subfolder, in which each real folder is read once."""
        seen: set[tuple[int, int]] = set()
        pending = [folder]
        while pending:
            path = pending.pop()
            if not self._is_new(path, seen):
                continue
            below = []
            for entry in self.entries(path):
                if self.is_folder(entry):
                    below.append(entry.path)
                elif self.is_image(entry):
                    yield entry.path[self._prefix :]
            pending += reversed(below)

    def _is_new(self, folder: str, seen: set[tuple[int, int]]) -> bool:
        """Whether to read a folder, which is then added to `seen`; otherwise it is skipped."""
        try:
            identity = _identity(folder)
        except OSError as error:
            self.skip(folder, f"folder cannot be read ({error.strerror})", "unreadable")
            return False
        if identity in self._above:
            self.skip(folder, "symbolic link to a folder above it", "folder-above")
        elif identity in seen:
            self.skip(folder, "folder already read under another name", "folder-repeated")
        else:
            seen.add(identity)
            return True
        return False


def has_images_below(folder: Path) -> bool:
    """Whether a folder or its subfolders have image files, of whatever format: then other files in it are not the data."""
    walk = FolderWalk(folder)
    try:
        has_one = next(walk.all_images(), None) is not None
    except DataError:  # it cannot be read; who lists its parent says so
        return False
    return has_one or any(item.code == "unsupported-format" for item in walk.skipped)


def _identity(folder: str | Path) -> tuple[int, int]:
    """Device and inode of a folder, the same for all links to it."""
    status = os.stat(folder)
    return status.st_dev, status.st_ino


def _is_hidden(name: str) -> bool:
    """Whether an entry is hidden, or written by the operating system."""
    return name.startswith((".", "__MACOSX")) or name.lower() in SYSTEM_FILES
