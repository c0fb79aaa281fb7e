"""Tokens on disk: fixed-size records in shards, and an index with the image of each record.

A folder contains `meta.json` (what the records are), `index.bin` (a digest and checksums per record) and
`tokens-NNNNN.bin` (the records). Records are only appended, in groups: first the tokens, then their index entries, each
flushed to disk. If the process is killed, the store is complete up to its last group, also if some of the entries of the next
one were written: images of a group go through the trunk together, and a smaller group could give another last bit. A record is
found by the digest of its image, so a changed image becomes a new record and the others stay as they are.

Several processes write to one store at the same time, each to a part of its own: process 0 to the files above, process P
to `index-P.bin` and `tokens-P-NNNNN.bin`. Records of all parts are read, whoever wrote them.

Each view has a checksum, which is compared when the view is first read. The CRC-32 of a view takes about a quarter of the
time of its conversion to fp32. Once per view and process this is well below 1 % of a training, so that checking only a
sample of the records would save nothing.

Records are read into a buffer, not through a memory map: this is as fast from the page cache, and the resident memory does
not grow with the store.
"""

from __future__ import annotations

import json
import os
import weakref
import zlib
from bisect import bisect_right
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO, TypedDict

import numpy as np
from numpy.typing import NDArray

from newkind.atomic import file_lock, make_folder, write_bytes
from newkind.backbone.decoded_views import DIGEST_BYTES
from newkind.backbone.record_layout import LayoutFile, RecordLayout
from newkind.backbone.tokens import Tokens
from newkind.errors import CacheError
from newkind.schema import InvalidJson, parse_json, read_json_file

__all__ = ["StoreFile", "TokenStore", "entry_dtype"]

FORMAT = 2
"""Format 1 has one checksum per record instead of one per view. It is read and continued as it is."""
CONTINUES = 0xFFFFFFFF
"""Added to the check of an entry whose group continues, so that only the last entry of a group completes it."""
SHARD_BYTES = 256 * 2**20
"""Largest size of a shard, unless a single record is larger."""
OPEN_SHARDS = 48
"""Largest number of shards that are open at the same time."""


class StoreFile(TypedDict):
    """meta.json."""

    format: int
    layout: LayoutFile
    about: dict[str, Any]


def entry_dtype(n_checksums: int) -> np.dtype[np.void]:
    """NumPy dtype of an index entry with so many checksums."""
    return np.dtype([("digest", f"V{DIGEST_BYTES}"), ("crc", "<u4", (n_checksums,)), ("check", "<u4")])


class TokenStore:
    """A store of records in a folder. Only records that were completely written are visible.

    Opening it writes nothing. A store that does not exist has no records, and is created with the first ones.

    Parameters
    ----------
    folder : Path
        Folder of the store.
    layout : RecordLayout
        Layout of the records.
    about : dict
        What the records are, as JSON. An existing store must have the same layout and description.
    part : int, default=0
        Part that new records are appended to; nobody else may write to it at the same time.

    Raises
    ------
    CacheError
        With code `damaged` for a damaged store (fact `record` for a damaged index entry), `other-tokens` for a store of other
        records.
    """

    def __init__(self, folder: Path, layout: RecordLayout, *, about: dict[str, Any], part: int = 0) -> None:
        self.folder = folder
        self.layout = layout
        self.part = part
        self._view_dtype = layout.view_dtype()
        self.per_shard = max(1, SHARD_BYTES // layout.record_bytes)
        self._files: dict[tuple[int, int], BinaryIO] = {}
        weakref.finalize(self, _close_all, self._files)
        self._meta: dict[str, Any] = {"format": FORMAT, "layout": asdict(layout), "about": about}
        self._exists = self._meta_file.exists()
        self.n_checksums = 1 if self._exists and self._checked_format() == 1 else layout.n_views + 1
        self._entry = entry_dtype(self.n_checksums)
        self._digests: list[bytes] = []
        self._crcs: list[list[int]] = []
        others = {0, *map(_part_of, folder.glob("index-*.bin"))} - {part}
        self._parts = [*sorted(others), part]  # its own is the last, because it grows
        self._starts = [self._open_part(number) for number in self._parts]  # first record of each part
        self._slots = {digest: slot for slot, digest in enumerate(self._digests)}
        self._verified = bytearray(len(self) * self.n_checksums)

    def __len__(self) -> int:
        return len(self._digests)

    def slot_of(self, digest: bytes) -> int | None:
        """Find the record of an image.

        Parameters
        ----------
        digest : bytes
            Digest of the content of the image.

        Returns
        -------
        int or None
            Number of the record; None if there is none.
        """
        return self._slots.get(digest)

    def append(self, digests: list[bytes], tokens: Tokens) -> None:
        """Add records. When this returns, they are on disk.

        Parameters
        ----------
        digests : list of bytes, length R
            Digest of the content of each image.
        tokens : Tokens of R * (V + 1) views
            All views of these images, image by image.

        Raises
        ------
        OSError
            If they cannot be written.
        """
        if not self._exists:
            self._create()
        records = self.layout.pack(tokens)
        entries = np.zeros(len(digests), dtype=self._entry)
        part = self.layout.record_bytes // self.n_checksums
        for i, (digest, record) in enumerate(zip(digests, records, strict=True)):
            file, at = self._file(len(self) + i, write=True)
            content = record.tobytes()
            _write_all(file, at, content)
            crcs = [zlib.crc32(content[at : at + part]) for at in range(0, len(content), part)]
            entries[i] = (digest, crcs, 0)
            entries[i]["check"] = zlib.crc32(entries[i].tobytes()[:-4]) ^ (CONTINUES if i < len(digests) - 1 else 0)
        start = self._starts[-1]
        for shard in {(slot - start) // self.per_shard for slot in range(len(self), len(self) + len(digests))}:
            os.fsync(self._file(start + shard * self.per_shard, write=True)[0].fileno())
        index_file = self._index(self.part)
        index_file.touch()
        with open(index_file, "r+b") as index:
            index.seek((len(self) - start) * self._entry.itemsize)
            index.truncate()  # an incomplete entry of a process that was killed
            index.write(entries.tobytes())
            index.flush()
            os.fsync(index.fileno())
        for digest, crcs in zip(digests, entries["crc"].tolist(), strict=True):
            self._slots[digest] = len(self)
            self._digests.append(digest)
            self._crcs.append(crcs)
            self._verified += bytes(self.n_checksums)

    def read(self, slots: NDArray[np.int64], views: NDArray[np.int64]) -> Tokens:
        """Read one view per record.

        Parameters
        ----------
        slots : ndarray of int64, shape (B,)
            Numbers of records.
        views : ndarray of int64, shape (B,)
            Number of the view of each record.

        Returns
        -------
        Tokens of B views
            In fp32.
        """
        return self.layout.unpack(self.read_packed(slots, views))

    def read_packed(self, slots: NDArray[np.int64], views: NDArray[np.int64]) -> NDArray[np.void]:
        """Read one view per record as it is stored; `layout.unpack` converts it to tokens.

        Parameters
        ----------
        slots, views : ndarray of int64, shape (B,)
            As in `read`.

        Returns
        -------
        ndarray of shape (B,)

        Raises
        ------
        CacheError
            With code `damaged` if the bytes are not those that were written.
        """
        packed = np.empty(len(slots), dtype=self._view_dtype)
        size = self._view_dtype.itemsize
        rows = packed.view(np.uint8).reshape(len(slots), size)
        for row, slot, view in zip(rows, slots.tolist(), views.tolist(), strict=True):
            file, at = self._file(slot, write=False)
            file.seek(at + view * size)
            if file.readinto(row.data) != size:  # type: ignore[attr-defined]
                raise self._damaged(f"{file.name} was truncated while it was in use.")
            self._verify(slot, view, row.data)
        return packed

    def damaged(self) -> list[int]:
        """Find records whose bytes have changed since they were written; reads the whole store.

        Returns
        -------
        list of int
        """
        parts = range(self.n_checksums)
        return [
            slot
            for slot in range(len(self))
            if any(zlib.crc32(self._part(slot, part)) != self._crcs[slot][part] for part in parts)
        ]

    def _verify(self, slot: int, view: int, content: memoryview) -> None:
        """Raise if a view that is read for the first time has other bytes than those that were written."""
        part = view if self.n_checksums > 1 else 0
        if self._verified[slot * self.n_checksums + part]:
            return
        whole = content if self.n_checksums == self.layout.n_views + 1 else self._part(slot, part)
        if zlib.crc32(whole) != self._crcs[slot][part]:
            raise self._damaged(f"Record {slot} of {self.folder} is damaged.", record=slot)
        self._verified[slot * self.n_checksums + part] = 1

    def _part(self, slot: int, part: int) -> bytes:
        """Bytes of a record that have one checksum."""
        size = self.layout.record_bytes // self.n_checksums
        file, at = self._file(slot, write=False)
        file.seek(at + part * size)
        return file.read(size)

    def close(self) -> None:
        """Close all files; they are opened again when needed."""
        _close_all(self._files)

    def _index(self, part: int) -> Path:
        """Index of a part."""
        return self.folder / (f"index-{part:05d}.bin" if part else "index.bin")

    def _shard(self, part: int, shard: int) -> Path:
        """A file of a part."""
        return self.folder / f"tokens-{f'{part:05d}-' if part else ''}{shard:05d}.bin"

    def _file(self, slot: int, *, write: bool) -> tuple[BinaryIO, int]:
        """Open file of a record, and where the record starts; only the OPEN_SHARDS last used files stay open."""
        at = bisect_right(self._starts, slot) - 1
        shard, row = divmod(slot - self._starts[at], self.per_shard)
        key = self._parts[at], shard
        file = self._files.pop(key, None)
        if file is not None and write and not file.writable():
            file.close()
            file = None
        if file is None:
            path = self._shard(*key)
            if write and not path.exists():
                path.touch()
            file = open(path, "r+b" if write else "rb", buffering=0)  # noqa: SIM115 - closed here or in close()
        self._files[key] = file  # the last used one is the last in the dict
        while len(self._files) > OPEN_SHARDS:
            self._files.pop(next(iter(self._files))).close()
        return file, row * self.layout.record_bytes

    def _open_part(self, part: int) -> int:
        """Add the records of a part; the number of the first one."""
        start, index = len(self), self._index(part)
        if (part == 0 and self._exists) or index.exists():  # the others are created with their first records
            entries = self._read_index(index)
            self._check_shards(part, len(entries))
            self._digests += [entry.tobytes() for entry in entries["digest"]]
            self._crcs += entries["crc"].tolist()
        return start

    @property
    def _meta_file(self) -> Path:
        return self.folder / "meta.json"

    def _create(self) -> None:
        """Write `meta.json` and an empty index, unless another process has done it meanwhile."""
        make_folder(self.folder)
        with file_lock(self.folder / "meta.lock"):
            if not self._meta_file.exists():
                self._index(0).touch()
                write_bytes(self._meta_file, json.dumps(self._meta, indent=2).encode(), error=CacheError)
        self._exists = True

    def _checked_format(self) -> int:
        """Format of an existing store, whose `meta.json` has to be that of the requested one."""
        wanted = parse_json(json.dumps(self._meta), dict)
        try:
            found: dict[str, Any] = dict(read_json_file(self._meta_file, StoreFile))
            found["layout"] = asdict(RecordLayout(**found["layout"]))  # with fields that are newer than the store
        except (OSError, InvalidJson, TypeError, CacheError) as error:
            raise self._damaged(f"{self._meta_file} cannot be read ({error}).") from None
        if found not in (wanted, wanted | {"format": 1}):
            raise CacheError(
                f"{self.folder} contains other tokens than the requested ones.",
                fix=self._remedy(),
                code="other-tokens",
                folder=self.folder,
            )
        return int(found["format"])

    def _read_index(self, path: Path) -> NDArray[np.void]:
        """Entries of an index whose groups are complete."""
        try:
            content = path.read_bytes()
        except OSError as error:
            raise self._damaged(f"{path} cannot be read ({error.strerror}).") from None
        size = self._entry.itemsize
        entries = np.frombuffer(content[: len(content) // size * size], dtype=self._entry)
        change = np.array([zlib.crc32(entry.tobytes()[:-4]) ^ int(entry["check"]) for entry in entries], dtype=np.int64)
        is_sound, is_last = (change == 0) | (change == CONTINUES), change == 0
        n_sound = len(entries) if is_sound.all() else int(is_sound.argmin())
        if is_sound[n_sound:].any():  # a killed process leaves an incomplete end, but never a gap
            raise self._damaged(f"{path} is damaged at record {n_sound}.", record=n_sound)
        return entries[: int(np.flatnonzero(is_last[:n_sound]).max(initial=-1)) + 1]

    def _check_shards(self, part: int, n_records: int) -> None:
        """Check that the shards of a part are long enough for all records of its index."""
        for shard in range(-(-n_records // self.per_shard)):
            path = self._shard(part, shard)
            n = min(self.per_shard, n_records - shard * self.per_shard)
            size = path.stat().st_size if path.exists() else 0
            if size < n * self.layout.record_bytes:
                raise self._damaged(
                    f"{path} has {size:,} bytes instead of {n * self.layout.record_bytes:,}.", file=path
                )

    def _damaged(self, what: str, **facts: Any) -> CacheError:
        """Error for a damaged store."""
        return CacheError(what, fix=self._remedy(), code="damaged", folder=self.folder, **facts)

    def _remedy(self) -> str:
        """Command that removes the store."""
        return f"Remove it with: newkind cache prune {self.folder.name}"


def _write_all(file: BinaryIO, at: int, content: bytes) -> None:
    """Write everything or raise OSError; a single unbuffered write may be short without an error."""
    file.seek(at)
    rest = memoryview(content)
    while rest:
        rest = rest[file.write(rest) :]


def _part_of(index: Path) -> int:
    """Number of the part of an index file; 0 for a file of another name."""
    number = index.stem.removeprefix("index-")
    return int(number) if number.isdecimal() else 0


def _close_all(files: dict[tuple[int, int], BinaryIO]) -> None:
    """Close and forget open files."""
    for file in files.values():
        file.close()
    files.clear()
