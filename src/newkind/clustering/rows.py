"""Features (N, d) as k-means reads them: centred, float32, in chunks of rows, from memory or from a memory map."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from newkind.errors import DataError

__all__ = ["Rows", "centred_rows", "n_fitting"]

HOLD_BYTES = 2**30
"""Centred rows up to this size are kept in memory; larger ones are read anew, chunk by chunk, on every pass."""
CHUNK_CELLS = 2**22
"""Of the largest array that a chunk gives rise to, on a CPU: 16 MB of float32."""
LARGEST = 1e12
"""Sums of squares of larger features could leave float32's range."""


class Rows:
    """Some rows of a source, less `shift`: squared distances stay accurate in float32 however far off the data lies."""

    def __init__(
        self, source: Tensor | NDArray[Any], shift: Tensor, *, index: Tensor | None, held: Tensor | None
    ) -> None:
        self.source = source
        self.shift = shift
        """(d,), on the device that computes; float64 if the source is, else float32."""
        self.index = index
        """(n,) row numbers in the source, rising; None for all of them."""
        self.held = held
        """(n, d), if there was room."""
        self._squares: Tensor | None = None

    def __len__(self) -> int:
        return len(self.source) if self.index is None else len(self.index)

    @property
    def dim(self) -> int:
        return len(self.shift)

    @property
    def device(self) -> torch.device:
        return self.shift.device

    @property
    def squares(self) -> Tensor:
        """(n,): the squared length of each row."""
        if self._squares is None:
            # Into one array: small results between large temporaries keep the allocator from using their place again.
            squares = torch.empty(len(self), device=self.device)
            for piece, x in self.chunks(self.dim):
                torch.sum(x.square(), dim=1, out=squares[piece])
            self._squares = squares
        return self._squares

    def chunks(self, width: int) -> Iterator[tuple[slice, Tensor]]:
        """Pieces of the rows, (b, d) each, and where they belong. `width`: columns of the array made from a piece."""
        n_cells = CHUNK_CELLS if self.device.type == "cpu" else 4 * CHUNK_CELLS
        n_rows = max(1, n_cells // max(width, self.dim))
        if self.held is not None:
            for start in range(0, len(self), n_rows):
                piece = slice(start, min(start + n_rows, len(self)))
                yield piece, self.held[piece]
            return
        end = 0
        for start in range(0, len(self.source), n_rows):
            stop = min(start + n_rows, len(self.source))
            if self.index is None:
                yield slice(start, stop), _read(self.source, start, stop, self.shift)
                continue
            begin, end = end, int(torch.searchsorted(self.index, stop))
            if begin < end:
                places = (self.index[begin:end] - start).to(self.device)
                yield slice(begin, end), _read(self.source, start, stop, self.shift)[places]

    def take(self, which: Tensor) -> Tensor:
        """(m, d): a few of the rows, by their place among them."""
        if self.held is not None:
            return self.held[which]
        places = which.cpu() if self.index is None else self.index[which.cpu()]
        parts = [_read(self.source, i, i + 1, self.shift) for i in places.tolist()]
        return torch.cat(parts) if parts else torch.zeros(0, self.dim, device=self.device)

    def subset(self, which: Tensor) -> Rows:
        """Rows at rising places (m,)."""
        places = which.cpu() if self.index is None else self.index[which.cpu()]
        part = Rows(self.source, self.shift, index=places, held=None if self.held is None else self.held[which])
        if self._squares is not None:
            part._squares = self._squares[which]
        return part

    def values(self) -> Tensor:
        """(n, d): all of them, in memory from now on."""
        if self.held is None:
            held = torch.empty(len(self), self.dim, device=self.device)
            for piece, x in self.chunks(self.dim):
                held[piece] = x
            self.held = held
        return self.held


def centred_rows(x: Tensor | NDArray[Any], device: torch.device, *, shift: Tensor | None = None) -> Rows:
    """All rows of x (N, d), held if they are small. shift: (d,), the mean unless given."""
    x = x.detach() if isinstance(x, Tensor) else np.asanyarray(x)
    if x.ndim != 2 or 0 in x.shape:
        raise DataError(f"Features are one row a sample, (N, d) with N and d above 0; got shape {tuple(x.shape)}.")
    kind = str(x.dtype).removeprefix("torch.")
    if not kind.startswith(("float", "bfloat", "int", "uint")):
        raise DataError(f"Features are numbers; got {kind}.")
    total, largest = _total(x)
    if not largest < LARGEST:
        raise DataError(_what_is_wrong(x))
    if shift is None:
        shift = torch.from_numpy(total / len(x))
    narrow = kind in ("float16", "bfloat16", "float32")
    rows = Rows(x, shift.to(device, torch.float32 if narrow else torch.float64), index=None, held=None)
    if len(rows) <= n_fitting(rows.dim):
        rows.values()
    return rows


def n_fitting(dim: int) -> int:
    """Rows that may be held in memory."""
    return HOLD_BYTES // (4 * dim)


def _total(x: Tensor | NDArray[Any]) -> tuple[NDArray[np.float64], float]:
    """The sum of all rows (d,), and the largest magnitude: infinite if there is NaN or an infinity."""
    n_rows = max(1, CHUNK_CELLS // x.shape[1])
    total, largest = np.zeros(x.shape[1]), 0.0
    for start in range(0, len(x), n_rows):
        if isinstance(x, Tensor):
            piece = x[start : start + n_rows]
            total += piece.sum(dim=0, dtype=torch.float64).cpu().numpy()
            largest = max(largest, float(piece.max()), -float(piece.min()))
        else:
            part = x[start : start + n_rows]
            with np.errstate(invalid="ignore", over="ignore"):
                total += part.sum(axis=0, dtype=np.float64)
                largest = max(largest, float(part.max()), -float(part.min()))
            _drop_pages(x)
        if not np.isfinite(total).all():
            return total, np.inf
    return total, largest


def _what_is_wrong(x: Tensor | NDArray[Any]) -> str:
    for start in range(0, len(x), 4096):
        part = x[start : start + 4096]
        is_fine = np.isfinite(part.double().cpu().numpy() if isinstance(part, Tensor) else part).all(axis=1)
        if not is_fine.all():
            return f"Row {start + int(is_fine.argmin())} of the features holds NaN or an infinity."
    return f"Features are too large to be squared: their magnitude must stay below {LARGEST:.0e}. Scale them down."


def _read(x: Tensor | NDArray[Any], start: int, stop: int, shift: Tensor) -> Tensor:
    """Rows start to stop, less shift, in float32 on the shift's device."""
    if isinstance(x, Tensor):
        return (x[start:stop].to(shift) - shift).float()
    part = torch.from_numpy(np.array(x[start:stop], dtype=np.float64 if shift.dtype == torch.float64 else np.float32))
    _drop_pages(x)
    return part.to(shift.device).sub_(shift).float()


def _drop_pages(x: NDArray[Any]) -> None:
    """Gives the pages of a memory map that were read back to the system; the file keeps what they hold."""
    base: Any = x
    while base is not None and not isinstance(base, np.memmap):
        base = getattr(base, "base", None)
    # Pages of a copy-on-write map ("c") may hold changes that are nowhere else.
    if base is None or getattr(base, "mode", "c") == "c" or not hasattr(mmap, "MADV_DONTNEED"):
        return
    mapping = getattr(base, "_mmap", None)
    if isinstance(mapping, mmap.mmap):
        mapping.madvise(mmap.MADV_DONTNEED)
