"""Which processes use the same cache folder: those of one machine, or of several with a shared file system."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from newkind import distributed
from newkind.atomic import create_empty, make_folder
from newkind.errors import CacheError

__all__ = ["Disks"]


@dataclass(frozen=True, eq=False)
class Disks:
    """The disk of every process.

    Parameters
    ----------
    of_process : ndarray of int64, shape (W,), optional
        Number of the disk of each process, from 0. Default: one process.
    rank : int, default=0
        Number of this process.
    """

    of_process: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    rank: int = 0

    @classmethod
    def find(cls, folder: Path) -> Disks:
        """Find which processes see the same folder; all of them have to ask.

        Each process creates a file of a name that did not exist before, and looks for the files of the others: paths, host
        names and identifiers can be the same on different machines. A process that cannot create one, and sees none, counts as
        one with a disk of its own: a folder that may only be read is shared as far as the same images are in it.
        """
        n, rank = distributed.world_size(), distributed.rank()
        if n == 1:
            return cls()
        job = distributed.gather_bytes(os.urandom(8))[0].hex()
        files = [folder / f".process-{job}-{number}" for number in range(n)]
        try:
            with suppress(OSError):
                make_folder(folder)
                create_empty(files[rank])
            distributed.barrier()
            first = next((number for number, file in enumerate(files) if os.path.exists(file)), rank)
            found = distributed.gather_bytes(first.to_bytes(8, "little"))
        finally:
            with suppress(OSError):
                files[rank].unlink()
        _, numbers = np.unique([int.from_bytes(number, "little") for number in found], return_inverse=True)
        return cls(numbers.astype(np.int64), rank)

    @property
    def share(self) -> float:
        """Share of all processes that use the disk of this one."""
        return float((self.of_process == self.of_process[self.rank]).mean())

    @property
    def turns(self) -> list[int]:
        """All processes, in an order that alternates between the disks."""
        nth = {rank: int((self.of_process[:rank] == disk).sum()) for rank, disk in enumerate(self.of_process)}
        return sorted(nth, key=lambda rank: (nth[rank], rank))

    def gather_masks(self, mask: NDArray[np.bool_], *, same: bool = False) -> NDArray[np.bool_]:
        """Masks (D, n) of all disks, from what each process finds on its own (n,); all of them have to ask.

        Raises
        ------
        CacheError
            With code `stale-files` if the masks have to be the `same` for processes of one disk, and are not.
        """
        if len(self.of_process) == 1:
            return mask[None]
        rows = distributed.gather_bytes(np.packbits(mask).tobytes())
        _, firsts = np.unique(self.of_process, return_index=True)  # (D,): the first process of each disk
        if same and any(row != rows[firsts[disk]] for row, disk in zip(rows, self.of_process, strict=True)):
            raise CacheError(
                "Processes that share a cache folder see different files in it.",
                fix="Run the same command again.",
                code="stale-files",
            )
        found = [np.unpackbits(np.frombuffer(rows[first], np.uint8), count=len(mask)) for first in firsts]
        return np.array(found, dtype=bool)
