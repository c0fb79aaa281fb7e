"""Tokens on disk: fixed-size records in shards, and an index with the image of each record.

A folder contains `meta.json` (what the records are), `index.bin` (24 bytes per record) and `tokens-NNNNN.bin` (the
records). Records are only appended, in groups: first the tokens, then their index entries, each flushed to disk. If the
process is killed, the store is complete up to its last group. A record is found by the digest of its image, so a changed
image becomes a new record and the others stay as they are.

Records are read into a buffer, not through a memory map: this is as fast from the page cache, and the resident memory does
not grow with the store.
"""

from __future__ import annotations

import json
import os
import weakref
import zlib
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from newkind.atomic import write_bytes
from newkind.backbone.decoded_views import DIGEST_BYTES
from newkind.backbone.record_layout import RecordLayout
from newkind.backbone.tokens import Tokens
from newkind.errors import CacheError
from newkind.schema import InvalidJson, read_json_file

__all__ = ["TokenStore"]

FORMAT = 1
SHARD_BYTES = 256 * 2**20
"""Largest size of a shard, unless a single record is larger."""
OPEN_SHARDS = 48
"""Largest number of shards that are open at the same time."""
ENTRY = np.dtype([("digest", f"V{DIGEST_BYTES}"), ("crc", "<u4"), ("check", "<u4")])


class TokenStore:
    """A store of records in a folder, opened or created. Only records that were completely written are visible.

    Parameters
    ----------
    folder : Path
        Folder of the store.
    layout : RecordLayout
        Layout of the records.
    about : dict
        What the records are, as JSON. An existing store must have the same layout and description.

    Raises
    ------
    CacheError
        With code `damaged` for a damaged store (fact `record` for a damaged index entry), `other-tokens` for a store of other
        records.
    """

    def __init__(self, folder: Path, layout: RecordLayout, *, about: dict[str, Any]) -> None:
        self.folder = folder
        self.layout = layout
        self._view_dtype = layout.view_dtype()
        self.per_shard = max(1, SHARD_BYTES // layout.record_bytes)
        self._files: dict[int, BinaryIO] = {}
        weakref.finalize(self, _close_all, self._files)
        folder.mkdir(parents=True, exist_ok=True)
        self._check_meta({"format": FORMAT, "layout": asdict(layout), "about": about})
        entries = self._read_index()
        self._digests = [entry.tobytes() for entry in entries["digest"]]
        self._slots = {digest: slot for slot, digest in enumerate(self._digests)}
        self._crcs: list[int] = entries["crc"].tolist()
        self._check_shards()

    def __len__(self) -> int:
        return len(self._crcs)

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

    def digests(self, slots: NDArray[np.int64]) -> bytes:
        """Digests of records.

        Parameters
        ----------
        slots : ndarray of int64, shape (n,)
            Numbers of records, or -1.

        Returns
        -------
        bytes
            The digests, concatenated; zeros for -1.
        """
        return b"".join(self._digests[slot] if slot >= 0 else bytes(DIGEST_BYTES) for slot in slots.tolist())

    def append(self, digests: list[bytes], tokens: Tokens) -> None:
        """Add records. When this returns, they are on disk.

        Parameters
        ----------
        digests : list of bytes, length R
            Digest of the content of each image.
        tokens : Tokens of R * (V + 1) views
            All views of these images, image by image.
        """
        records = self.layout.pack(tokens)
        entries = np.zeros(len(digests), dtype=ENTRY)
        for i, (digest, record) in enumerate(zip(digests, records, strict=True)):
            shard, row = divmod(len(self) + i, self.per_shard)
            _write_all(self._shard(shard, write=True), row * self.layout.record_bytes, record.tobytes())
            entries[i] = (digest, zlib.crc32(record.data), 0)
            entries[i]["check"] = zlib.crc32(entries[i].tobytes()[:-4])
        for shard in {slot // self.per_shard for slot in range(len(self), len(self) + len(digests))}:
            os.fsync(self._shard(shard, write=True).fileno())
        with open(self.folder / "index.bin", "r+b") as index:
            index.seek(len(self) * ENTRY.itemsize)
            index.truncate()  # an incomplete entry of a process that was killed
            index.write(entries.tobytes())
            index.flush()
            os.fsync(index.fileno())
        for digest, crc in zip(digests, entries["crc"].tolist(), strict=True):
            self._slots[digest] = len(self._crcs)
            self._digests.append(digest)
            self._crcs.append(crc)

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
        """
        packed = np.empty(len(slots), dtype=self._view_dtype)
        size = self._view_dtype.itemsize
        rows = packed.view(np.uint8).reshape(len(slots), size)
        for row, slot, view in zip(rows, slots.tolist(), views.tolist(), strict=True):
            shard, at = divmod(slot, self.per_shard)
            file = self._shard(shard, write=False)
            file.seek(at * self.layout.record_bytes + view * size)
            if file.readinto(row.data) != size:  # type: ignore[attr-defined]
                raise self._damaged(f"{file.name} was truncated while it was in use.")
        return packed

    def damaged(self) -> list[int]:
        """Find records whose bytes have changed since they were written; reads the whole store.

        Returns
        -------
        list of int
        """
        found = []
        for slot, crc in enumerate(self._crcs):
            shard, row = divmod(slot, self.per_shard)
            file = self._shard(shard, write=False)
            file.seek(row * self.layout.record_bytes)
            if zlib.crc32(file.read(self.layout.record_bytes)) != crc:
                found.append(slot)
        return found

    def close(self) -> None:
        """Close all files; they are opened again when needed."""
        _close_all(self._files)

    def _shard(self, number: int, *, write: bool) -> BinaryIO:
        """Open file of a shard; only the OPEN_SHARDS last used ones stay open."""
        file = self._files.pop(number, None)
        if file is not None and write and not file.writable():
            file.close()
            file = None
        if file is None:
            path = self.folder / f"tokens-{number:05d}.bin"
            if write and not path.exists():
                path.touch()
            file = open(path, "r+b" if write else "rb", buffering=0)  # noqa: SIM115 - closed here or in close()
        self._files[number] = file  # the last used one is the last in the dict
        while len(self._files) > OPEN_SHARDS:
            self._files.pop(next(iter(self._files))).close()
        return file

    def _check_meta(self, meta: dict[str, Any]) -> None:
        """Write `meta.json` of a new store, or compare that of an existing one."""
        path = self.folder / "meta.json"
        wanted = json.loads(json.dumps(meta))
        if not path.exists():
            (self.folder / "index.bin").touch()
            write_bytes(path, json.dumps(meta, indent=2).encode(), error=CacheError)
            return
        try:
            found = read_json_file(path, dict)
        except (OSError, InvalidJson) as error:
            raise self._damaged(f"{path} cannot be read ({error}).") from None
        if found != wanted:
            raise CacheError(
                f"{self.folder} contains other tokens than the requested ones.",
                fix=self._remedy(),
                code="other-tokens",
                folder=self.folder,
            )

    def _read_index(self) -> NDArray[np.void]:
        """Complete entries of the index."""
        try:
            content = (self.folder / "index.bin").read_bytes()
        except OSError as error:
            raise self._damaged(f"The index of {self.folder} cannot be read ({error.strerror}).") from None
        entries = np.frombuffer(content[: len(content) // ENTRY.itemsize * ENTRY.itemsize], dtype=ENTRY)
        is_sound = np.array([zlib.crc32(entry.tobytes()[:-4]) == int(entry["check"]) for entry in entries], dtype=bool)
        n_sound = len(entries) if is_sound.all() else int(is_sound.argmin())
        if is_sound[n_sound:].any():  # a killed process leaves an incomplete end, but never a gap
            raise self._damaged(f"The index of {self.folder} is damaged at record {n_sound}.", record=n_sound)
        return entries[:n_sound]

    def _check_shards(self) -> None:
        """Check that the shards are long enough for all records of the index."""
        for shard in range(-(-len(self) // self.per_shard)):
            path = self.folder / f"tokens-{shard:05d}.bin"
            n = min(self.per_shard, len(self) - shard * self.per_shard)
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


def _close_all(files: dict[int, BinaryIO]) -> None:
    """Close and forget open files."""
    for file in files.values():
        file.close()
    files.clear()
