"""A range of the items of a source, and parts of a long list that are read one at a time."""

from __future__ import annotations

import codecs
import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from newkind.data.identity import identity_digest, root_of
from newkind.data.items import Features, FileImages, Images, file_size
from newkind.data.names import Names
from newkind.errors import DataError

__all__ = ["ImageSlice", "ItemParts", "ListParts", "slice_items"]

MARK = codecs.BOM_UTF8
"""Bytes that editors on Windows put before a text in UTF-8."""


@dataclass(frozen=True)
class ImageSlice(Images):
    """Consecutive images of a source.

    Parameters
    ----------
    images : Images
        All images.
    start : int
        Index of the first one.
    names : sequence of str
        Names of the images in the slice.
    """

    images: Images
    start: int
    names: Sequence[str]

    def __len__(self) -> int:
        return len(self.names)

    def content(self, index: int) -> bytes:
        return self.images.content(self.start + index)

    def open(self, index: int) -> Image.Image:
        return self.images.open(self.start + index)

    def open_reduced(self, index: int, *, shorter_side: int) -> Image.Image:
        return self.images.open_reduced(self.start + index, shorter_side=shorter_side)

    def open_content(self, index: int, content: bytes, *, shorter_side: int | None = None) -> Image.Image:
        return self.images.open_content(self.start + index, content, shorter_side=shorter_side)


def slice_items(items: Images | Features, start: int, stop: int) -> Images | Features:
    """Items from `start` to before `stop`."""
    names = [items.names[i] for i in range(start, min(stop, len(items)))]
    if isinstance(items, Features):
        return Features(items.values[start:stop], names)
    return ImageSlice(items, start, names)


@dataclass(frozen=True)
class ItemParts:
    """Parts of items whose names are in memory.

    Parameters
    ----------
    items : Images or Features
        All items.
    size : int
        Number of items per part.
    """

    items: Images | Features
    size: int

    def __len__(self) -> int:
        return len(self.items)

    @property
    def digest(self) -> str:
        """SHA-256 of all names, the folder that they start from, and what tells the items from others with these names."""
        found = hashlib.sha256(
            f"{root_of(self.items)}\0{identity_digest(self.items)}\0".encode("utf-8", "surrogatepass")
        )
        for name in self.items.names:
            found.update(name.encode("utf-8", "surrogatepass") + b"\n")
        return found.hexdigest()

    def part(self, number: int) -> Images | Features:
        """Items of one part."""
        return slice_items(self.items, number * self.size, (number + 1) * self.size)


class ListParts:
    """Parts of a .txt file that lists one image file per line, of which one part is in memory at a time.

    The file is read once to find where the parts begin, and the size of every image file is asked for. Empty lines are ignored.

    Parameters
    ----------
    path : Path
        The list. Image files are relative to the working directory.
    size : int
        Number of images per part.

    Raises
    ------
    DataError
        With the code `missing-file` or `no-images`.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "list.txt"
    >>> _ = path.write_text("a.jpg\\nb.jpg\\n\\nc.jpg\\n")
    >>> found = ListParts(path, 2)
    >>> len(found), list(found.part(0).names), list(found.part(1).names)
    (3, ['a.jpg', 'b.jpg'], ['c.jpg'])
    """

    def __init__(self, path: Path, size: int) -> None:
        self.path, self.size = path, size
        self._starts: list[int] = []
        digest, n, is_relative = hashlib.sha256(), 0, False
        try:
            with open(path, "rb") as file:
                at = len(MARK) if file.read(len(MARK)) == MARK else 0
                file.seek(at)
                for line in file:
                    if name := line.strip():
                        if n % size == 0:
                            self._starts.append(at)
                        n += 1
                        digest.update(b"%s\n%d\n" % (name, file_size(name)))
                        is_relative = is_relative or not os.path.isabs(name)
                    at += len(line)
        except OSError as error:
            raise DataError(f"{path} cannot be read ({error.strerror}).", code="missing-file", path=str(path)) from None
        if not n:
            raise DataError(f"{path} lists no image.", fix="Write one image file per line.", code="no-images")
        if is_relative:
            digest.update(os.fsencode(Path().resolve()))
        self._n, self.digest = n, digest.hexdigest()

    def __len__(self) -> int:
        return self._n

    def part(self, number: int) -> FileImages:
        """Images of one part."""
        names: list[str] = []
        with open(self.path, "rb") as file:
            file.seek(self._starts[number])
            for line in file:
                if name := line.strip():
                    names.append(name.decode("utf-8", "surrogateescape"))
                if len(names) == self.size:
                    break
        return FileImages(Path(), Names(names))
