"""Collections from WebDataset archives: .tar files with an image, a label and metadata per sample.

Nothing is unpacked: images are read at their places in the archive, and member names are only names.
"""

from __future__ import annotations

import os
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from newkind.data.catalog import Catalog, Collection, Skipped
from newkind.data.cells import cell_text, group_name
from newkind.data.columns import find_columns, metadata_columns
from newkind.data.decoding import broken_image, has_image_suffix, unsupported_format
from newkind.data.file_sample import sampled_digest
from newkind.data.folder_walk import has_images_below
from newkind.data.groups import encode_groups
from newkind.data.items import EncodedImages
from newkind.data.labels import encode_labels, encode_truth, label_name
from newkind.data.names import Names, printable
from newkind.data.numbered_files import files_in, prefixes
from newkind.errors import DataError
from newkind.reading import ReadingConfig, check_used
from newkind.schema import parse_json

__all__ = ["TAR", "TarImages", "find_tars", "read_tars"]

TAR = (".tar",)
MAX_IMAGE = 2**29
MAX_TEXT = 2**22
"""Bytes of an image and of a label or metadata member; larger ones are not what they claim to be."""


@dataclass(frozen=True)
class TarImages(EncodedImages):
    """Image files in .tar archives.

    Parameters
    ----------
    archives : tuple of Path
        The archives.
    names : Names of length n_images
        Unique names: that of the member, after the name of its archive if there are several.
    archive : ndarray of int64, shape (n_images,)
        Index of each image's archive.
    start, size : ndarray of int64, shape (n_images,)
        Place of each image in its archive, in bytes.
    """

    archives: tuple[Path, ...]
    names: Names
    archive: NDArray[np.int64]
    start: NDArray[np.int64]
    size: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.names)

    def content(self, index: int) -> bytes:
        try:
            with open(self.archives[int(self.archive[index])], "rb") as file:
                file.seek(int(self.start[index]))
                found = file.read(int(self.size[index]))
        except OSError as error:
            reason = f"the archive cannot be read ({error.strerror})"
            raise broken_image(self.names[index], reason, code="unreadable") from None
        if len(found) < self.size[index]:
            raise broken_image(self.names[index], "the archive has become shorter", code="unreadable")
        return found

    def identity(self) -> Iterator[bytes]:
        yield from map(sampled_digest, self.archives)
        for size in self.size.tolist():
            yield str(size).encode()


@dataclass
class _Sample:
    """Members with the same key: images, and the values of all others by name."""

    key: str
    images: list[tuple[str, int, int]] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)


def find_tars(folder: Path) -> list[Path]:
    """Archives of a folder, sorted; none if they are beside images or folders of images."""
    found = files_in(folder, TAR)
    return [] if not found or has_images_below(folder) else found


def read_tars(paths: list[Path], *, origin: str = "", **options: Any) -> Collection:
    """Read WebDataset archives.

    Parameters
    ----------
    paths : list of Path
        Uncompressed .tar files. Members with the same name up to the first dot are a sample: image files, a label as `.cls`
        or in a `.json` object, and other texts or values, which are metadata.
    origin : str, default=""
        Value of `data` that names the archives. Default: the first path.
    **options : Any
        `label_column`, `truth_column` and `group_column`: keys of the `.json` members, or suffixes such as `cls`.

    Returns
    -------
    Collection
        The items are `TarImages`.

    Raises
    ------
    DataError
        If an archive is broken (`unreadable`), has a member with an absolute name or `..` in it (`unsafe-name`), or contains
        no image (`no-images`).

    Examples
    --------
    >>> import io, tempfile
    >>> from PIL import Image
    >>> path, picture = Path(tempfile.mkdtemp()) / "shard.tar", io.BytesIO()
    >>> Image.new("RGB", (8, 8)).save(picture, "PNG")
    >>> with tarfile.open(path, "w") as archive:
    ...     for name, content in (("1.png", picture.getvalue()), ("1.cls", b"bee"), ("2.png", picture.getvalue())):
    ...         member = tarfile.TarInfo(name)
    ...         member.size = len(content)
    ...         archive.addfile(member, io.BytesIO(content))
    >>> catalog = read_tars([path]).catalog
    >>> list(catalog.items.names), catalog.labels.tolist()
    (['1.png', '2.png'], [0, -1])
    """
    reading = ReadingConfig(**options)
    check_used(reading, ("label_column", "truth_column", "group_column"), "an archive")
    origin = origin or str(paths[0])
    names: dict[str, tuple[int, int, int]] = {}
    values: list[dict[str, Any]] = []
    skipped: list[Skipped] = []
    for number, (path, prefix) in enumerate(zip(paths, prefixes(paths), strict=True)):
        for sample in _samples(path, skipped, prefix):
            for name, start, size in sample.images:
                if prefix + name in names:
                    skipped.append(Skipped(prefix + name, "the archive has this name twice", "duplicate"))
                else:
                    names[prefix + name] = (number, start, size)
                    values.append(sample.values)
    if not names:
        more = f": {len(skipped):,} skipped, such as {skipped[0].name} ({skipped[0].reason})" if skipped else ""
        raise DataError(f"{printable(origin)} contains no image{more}.", code="no-images", path=origin)
    place = np.array(list(names.values()), dtype=np.int64)
    items = TarImages(tuple(paths), Names(names), *(np.ascontiguousarray(column) for column in place.T))
    return _collection(items, values, tuple(skipped), origin, reading)


def _collection(
    items: TarImages, values: list[dict[str, Any]], skipped: tuple[Skipped, ...], origin: str, reading: ReadingConfig
) -> Collection:
    """Collection of images with the values of their samples."""
    header = tuple(dict.fromkeys(key for row in values for key in row))
    at = find_columns(Path(origin), _as_label(header), reading, needed=(), roles=("label", "truth", "group"))

    def column(position: int | None) -> list[Any]:
        return [None if position is None else row.get(header[position]) for row in values]

    given = encode_labels(_checked(items, column(at.label)))
    groups = None if at.group is None else encode_groups([group_name(value) for value in column(at.group)], given)
    names = metadata_columns([header[i] for i in at.others])
    return Collection(
        catalog=Catalog(items=items, labels=given.indices, class_names=given.class_names, groups=groups),
        truth=None if at.truth is None else encode_truth(_checked(items, column(at.truth)), given),
        skipped=skipped,
        origin=origin,
        location=os.path.abspath(os.path.expanduser(origin)),
        reading=reading.given(),
        notes=at.notes,
        metadata={name: Names(map(cell_text, column(i))) for name, i in zip(names, at.others, strict=True)},
        group_column=at.group_name,
    )


def _as_label(header: tuple[str, ...]) -> tuple[str, ...]:
    """Names of columns in which WebDataset's `cls` is the label, unless there is a `label`."""
    return header if "label" in header else tuple("label" if name == "cls" else name for name in header)


def _checked(items: TarImages, values: list[Any]) -> Iterator[str | None]:
    """Class names of values; an error names the image."""
    for name, value in zip(items.names, values, strict=True):
        try:
            yield label_name(value)
        except DataError as error:
            raise DataError(f"{printable(name)}: {error.what}", fix=error.fix, code="not-a-label", name=name) from None


def _samples(path: Path, skipped: list[Skipped], prefix: str) -> Iterator[_Sample]:
    """Samples of an archive: consecutive members whose names are equal up to the first dot of the file name."""
    sample = _Sample("")
    for member, read in _members(path):
        folder, _, base = member.name.rpartition("/")
        stem, _, suffix = base.partition(".")
        key = f"{folder}/{stem}"
        if base.startswith(".") or "__MACOSX" in folder:
            continue
        if key != sample.key:
            yield sample
            sample = _Sample(key)
        is_image = has_image_suffix(base)
        if reason := unsupported_format(base):
            skipped.append(Skipped(prefix + member.name, reason, "unsupported-format"))
        elif member.size > (MAX_IMAGE if is_image else MAX_TEXT):
            skipped.append(Skipped(prefix + member.name, f"too large ({member.size:,} bytes)", "too-large"))
        elif is_image:
            sample.images.append((member.name, member.offset_data, member.size))
        else:
            sample.values |= _values(suffix, read(member))
    yield sample


def _values(suffix: str, content: bytes) -> dict[str, Any]:
    """Values of a member that is not an image: those of a JSON object, or one text; none for other bytes."""
    try:
        text = content.decode("utf-8-sig").strip()
        found: object = parse_json(text, object, any_number=True) if suffix == "json" else text
    except ValueError:
        return {}
    return {str(key): value for key, value in found.items()} if isinstance(found, dict) else {suffix: found}


def _members(path: Path) -> Iterator[tuple[tarfile.TarInfo, Callable[[tarfile.TarInfo], bytes]]]:
    """Regular files of an archive, with a function that reads their bytes; links, folders and devices are left out."""
    try:
        with open(path, "rb") as file, tarfile.open(fileobj=file, mode="r:") as archive:

            def read(member: tarfile.TarInfo) -> bytes:
                file.seek(member.offset_data)
                return file.read(member.size)

            while (member := archive.next()) is not None:
                archive.members = []  # type: ignore[attr-defined]  # a million members would fill the memory
                _check_name(path, member.name)
                if member.isreg() and not member.issparse():
                    yield member, read
            _check_end(file, archive.offset)
    except (tarfile.TarError, EOFError, OverflowError, UnicodeError, OSError) as error:
        packed = " It seems to be compressed." if _is_compressed(path) else ""
        raise DataError(
            f"{printable(str(path))} cannot be read as a .tar file ({error}).{packed}",
            fix="Copy it again, or unpack it with gunzip or zstd -d if it is compressed.",
            code="unreadable",
            path=str(path),
        ) from None


def _check_end(file: BinaryIO, place: int) -> None:
    """Raise tarfile.ReadError unless an archive ends at this place; tarfile takes a damaged header for its end."""
    file.seek(place)
    block = file.read(tarfile.BLOCKSIZE)
    if block and block != bytes(tarfile.BLOCKSIZE):
        raise tarfile.ReadError(f"it is cut off or damaged at byte {place:,}")


def _check_name(path: Path, name: str) -> None:
    """Raise DataError for a member name that leads out of the archive."""
    windows = PureWindowsPath(name)
    if windows.drive or windows.root or ".." in windows.parts or PurePosixPath(name).is_absolute() or "\0" in name:
        raise DataError(
            f"{printable(str(path))} has a member with an unsafe name, {printable(name)}.",
            fix="Names must be relative and without '..'. Do not unpack this archive.",
            code="unsafe-name",
            path=str(path),
            name=name,
        )


def _is_compressed(path: Path) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(4).startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zX"))
    except OSError:
        return False
