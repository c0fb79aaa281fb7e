"""Tokens on disk: fixed-size records in shards, and an index that says which image each one belongs to.

A folder holds `meta.json` (what the records are), `index.bin` (24 bytes a record) and `tokens-NNNNN.bin` (the
records). Records are only ever appended, in groups: first the tokens, then their index entries, each flushed to the
disk, so that whatever ends the process leaves a store that is complete up to its last group. A record is found by
the digest of its image, so that a changed image is a new record and nothing else is touched.

Reading is by plain reads into a buffer rather than through a memory map: as fast from the page cache, and the
resident memory stays what the buffer takes, however large the store is.
"""

from __future__ import annotations

import json
import os
import weakref
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from numpy.typing import NDArray

from newkind.backbone.decoded_views import DIGEST_BYTES
from newkind.backbone.tokens import Tokens
from newkind.errors import CacheError

__all__ = ["RecordLayout", "TokenStore"]

FORMAT = 1
SHARD_BYTES = 256 * 2**20
OPEN_SHARDS = 48
ENTRY = np.dtype([("digest", f"V{DIGEST_BYTES}"), ("crc", "<u4"), ("check", "<u4")])


@dataclass(frozen=True, kw_only=True)
class RecordLayout:
    """What one image's record holds: view 0 is the evaluation view, the others are random."""

    n_views: int
    """Random views; a record holds one view more."""
    n_tokens: int
    dim: int
    dtype: str = "float16"
    """float16, or int8 with one scale a token."""
    keep_moments: bool = False

    def __post_init__(self) -> None:
        if self.dtype not in ("float16", "int8"):
            raise CacheError(f"Tokens are kept as float16 or int8; got {self.dtype}.")
        if self.n_views < 2:
            raise CacheError(f"Training needs at least 2 random views of each image; got {self.n_views}.")

    def view_dtype(self) -> np.dtype[np.void]:
        """One view of one image, as it lies on disk."""
        fields: list[Any] = [("xhat", "<f2" if self.dtype == "float16" else "i1", (self.n_tokens, self.dim))]
        if self.dtype == "int8":
            fields.append(("scale", "<f4", (self.n_tokens,)))
        fields.append(("cls", "<f4", (self.dim,)))
        if self.keep_moments:
            fields.append(("moments", "<f4", (self.n_tokens, 2)))
        return np.dtype(fields, align=True)

    @property
    def record_bytes(self) -> int:
        return (self.n_views + 1) * self.view_dtype().itemsize

    def pack(self, tokens: Tokens) -> NDArray[np.void]:
        """Tokens of whole records, (R * (n_views + 1), ...), to what lies on disk, (R, n_views + 1)."""
        packed = np.zeros(len(tokens), dtype=self.view_dtype())
        xhat = tokens.xhat.float().cpu()
        if self.dtype == "int8":
            scale = xhat.abs().amax(dim=-1).clamp_min(1e-12) / 127  # (B, N)
            packed["xhat"] = (xhat / scale[..., None]).round().to(torch.int8).numpy()
            packed["scale"] = scale.numpy()
        else:
            packed["xhat"] = xhat.to(torch.float16).numpy()
        packed["cls"] = tokens.cls.float().cpu().numpy()
        if self.keep_moments and tokens.moments is not None:
            packed["moments"] = tokens.moments.float().cpu().numpy()
        return packed.reshape(-1, self.n_views + 1)

    def unpack(self, packed: NDArray[np.void]) -> Tokens:
        """Views as they lie on disk, (B,), to fp32 tokens."""
        xhat = torch.from_numpy(packed["xhat"]).float()
        if self.dtype == "int8":
            xhat *= torch.from_numpy(packed["scale"])[..., None]
        moments = torch.from_numpy(packed["moments"]).clone() if self.keep_moments else None
        return Tokens(xhat, torch.from_numpy(packed["cls"]).clone(), moments)


class TokenStore:
    """Opens the store in `folder`, or starts one. Everything that is read was complete when it was written."""

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
        """Where an image's record is; None if it is not here."""
        return self._slots.get(digest)

    def digests(self, slots: NDArray[np.int64]) -> bytes:
        """The digests of these records, one after the other; zeros for a slot of -1."""
        return b"".join(self._digests[slot] if slot >= 0 else bytes(DIGEST_BYTES) for slot in slots.tolist())

    def append(self, digests: list[bytes], tokens: Tokens) -> None:
        """Adds one record a digest. After this returns, the records survive the process and the machine."""
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
            index.truncate()  # half an entry, where the process was ended while it wrote one
            index.write(entries.tobytes())
            index.flush()
            os.fsync(index.fileno())
        for digest, crc in zip(digests, entries["crc"].tolist(), strict=True):
            self._slots[digest] = len(self._crcs)
            self._digests.append(digest)
            self._crcs.append(crc)

    def read(self, slots: NDArray[np.int64], views: NDArray[np.int64]) -> Tokens:
        """One view of each record: slots (B,), views (B,) -> Tokens of B views, fp32."""
        return self.layout.unpack(self.read_packed(slots, views))

    def read_packed(self, slots: NDArray[np.int64], views: NDArray[np.int64]) -> NDArray[np.void]:
        """The same as it lies on disk, (B,); `layout.unpack` makes tokens of it."""
        packed = np.empty(len(slots), dtype=self._view_dtype)
        size = self._view_dtype.itemsize
        rows = packed.view(np.uint8).reshape(len(slots), size)
        for row, slot, view in zip(rows, slots.tolist(), views.tolist(), strict=True):
            shard, at = divmod(slot, self.per_shard)
            file = self._shard(shard, write=False)
            file.seek(at * self.layout.record_bytes + view * size)
            if file.readinto(row.data) != size:  # type: ignore[attr-defined]
                raise CacheError(f"{file.name} was cut short while it was in use.", fix=self._remedy())
        return packed

    def damaged(self) -> list[int]:
        """Slots whose bytes are not those that were written; reads the whole store."""
        found = []
        for slot, crc in enumerate(self._crcs):
            shard, row = divmod(slot, self.per_shard)
            file = self._shard(shard, write=False)
            file.seek(row * self.layout.record_bytes)
            if zlib.crc32(file.read(self.layout.record_bytes)) != crc:
                found.append(slot)
        return found

    def close(self) -> None:
        _close_all(self._files)

    def _shard(self, number: int, *, write: bool) -> BinaryIO:
        """The open file of a shard; a cache of thousands keeps only the OPEN_SHARDS last used ones open."""
        file = self._files.pop(number, None)
        if file is not None and write and not file.writable():
            file.close()
            file = None
        if file is None:
            path = self.folder / f"tokens-{number:05d}.bin"
            if write and not path.exists():
                path.touch()
            file = open(path, "r+b" if write else "rb", buffering=0)  # noqa: SIM115 - closed here or in close()
        self._files[number] = file  # the last used is the last in the dict
        while len(self._files) > OPEN_SHARDS:
            self._files.pop(next(iter(self._files))).close()
        return file

    def _check_meta(self, meta: dict[str, Any]) -> None:
        path = self.folder / "meta.json"
        wanted = json.loads(json.dumps(meta))
        if not path.exists():
            (self.folder / "index.bin").touch()
            partial = path.with_suffix(".partial")
            partial.write_text(json.dumps(meta, indent=2))
            partial.replace(path)
            return
        try:
            found = json.loads(path.read_text())
        except (OSError, ValueError) as error:
            raise CacheError(f"{path} cannot be read ({error}).", fix=self._remedy()) from None
        if found != wanted:
            raise CacheError(f"{self.folder} holds tokens of another kind than those asked for.", fix=self._remedy())

    def _read_index(self) -> NDArray[np.void]:
        try:
            content = (self.folder / "index.bin").read_bytes()
        except OSError as error:
            raise CacheError(
                f"The index of {self.folder} cannot be read ({error.strerror}).", fix=self._remedy()
            ) from None
        entries = np.frombuffer(content[: len(content) // ENTRY.itemsize * ENTRY.itemsize], dtype=ENTRY)
        is_sound = np.array([zlib.crc32(entry.tobytes()[:-4]) == int(entry["check"]) for entry in entries], dtype=bool)
        n_sound = len(entries) if is_sound.all() else int(is_sound.argmin())
        if is_sound[n_sound:].any():  # a torn end is what a lost process leaves; a hole is something else
            raise CacheError(f"The index of {self.folder} is damaged at record {n_sound}.", fix=self._remedy())
        return entries[:n_sound]

    def _check_shards(self) -> None:
        """Every record that the index names is there, and the last ones are what was written."""
        for shard in range(-(-len(self) // self.per_shard)):
            path = self.folder / f"tokens-{shard:05d}.bin"
            n = min(self.per_shard, len(self) - shard * self.per_shard)
            size = path.stat().st_size if path.exists() else 0
            if size < n * self.layout.record_bytes:
                raise CacheError(
                    f"{path} has {size:,} bytes, but its index speaks of {n * self.layout.record_bytes:,}: it was cut short.",
                    fix=self._remedy(),
                )

    def _remedy(self) -> str:
        return f"Remove it with: newkind cache prune {self.folder.name}"


def _write_all(file: BinaryIO, at: int, content: bytes) -> None:
    """All of it, or the OSError that stands in the way: an unbuffered write may be short without one."""
    file.seek(at)
    rest = memoryview(content)
    while rest:
        rest = rest[file.write(rest) :]


def _close_all(files: dict[int, BinaryIO]) -> None:
    for file in files.values():
        file.close()
    files.clear()
