"""Features (N, d) as k-means reads them: centred float32 in chunks of rows, from memory or a memory map."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from newkind.data.feature_scale import LARGEST, SMALLEST, wrong_scale
from newkind.errors import DataError
from newkind.mapped import drop_pages

__all__ = ["Rows", "centred_rows", "n_fitting"]

HOLD_BYTES = 2**30
"""Centred rows up to this size are kept in memory; larger ones are read again in chunks on every pass."""
CHUNK_CELLS = 2**22
"""Number of elements of the largest array per chunk on a CPU: 16 MB of float32."""


class Rows:
    """Some rows of a source minus `shift`, so that squared distances stay accurate in float32 far from the origin.

    Parameters
    ----------
    source : tensor or ndarray of shape (N, d)
        All rows.
    shift : tensor of shape (d,)
        What is subtracted, on the device that computes; float64 if the source is, otherwise float32.
    index : tensor of shape (n,), optional
        Row numbers in the source, in ascending order. None: all rows.
    held : tensor of shape (n, d), optional
        The shifted rows, if they fit into memory.
    """

    def __init__(
        self, source: Tensor | NDArray[Any], shift: Tensor, *, index: Tensor | None, held: Tensor | None
    ) -> None:
        self.source = source
        self.shift = shift
        self.index = index
        self.held = held
        self._squares: Tensor | None = None

    def __len__(self) -> int:
        return len(self.source) if self.index is None else len(self.index)

    @property
    def dim(self) -> int:
        """Number of features, d."""
        return len(self.shift)

    @property
    def device(self) -> torch.device:
        """Device that computes."""
        return self.shift.device

    @property
    def squares(self) -> Tensor:
        """Squared length of each row, (n,)."""
        if self._squares is None:
            # Into one array: small results between large temporaries keep the allocator from reusing their memory.
            squares = torch.empty(len(self), device=self.device)
            for piece, x in self.chunks(self.dim):
                torch.sum(x.square(), dim=1, out=squares[piece])
            self._squares = squares
        return self._squares

    def chunks(self, width: int) -> Iterator[tuple[slice, Tensor]]:
        """Iterate over pieces of the rows.

        Parameters
        ----------
        width : int
            Number of columns of the array that is computed from a piece, which limits the size of the piece.

        Yields
        ------
        places : slice
            Places of the piece among the rows.
        piece : tensor of shape (b, d)
            The shifted rows.
        """
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
        """Read a few rows.

        Parameters
        ----------
        which : tensor of int64, shape (m,)
            Places of the rows.

        Returns
        -------
        tensor of shape (m, d)
            The shifted rows.
        """
        if self.held is not None:
            return self.held[which]
        places = which.cpu() if self.index is None else self.index[which.cpu()]
        parts = [_read(self.source, i, i + 1, self.shift) for i in places.tolist()]
        return torch.cat(parts) if parts else torch.zeros(0, self.dim, device=self.device)

    def subset(self, which: Tensor) -> Rows:
        """Choose some of the rows.

        Parameters
        ----------
        which : tensor of int64, shape (m,)
            Places of the rows, in ascending order.

        Returns
        -------
        Rows
            The chosen rows.
        """
        places = which.cpu() if self.index is None else self.index[which.cpu()]
        part = Rows(self.source, self.shift, index=places, held=None if self.held is None else self.held[which])
        if self._squares is not None:
            part._squares = self._squares[which]
        return part

    def values(self) -> Tensor:
        """All rows, (n, d), which are kept in memory from now on."""
        if self.held is None:
            held = torch.empty(len(self), self.dim, device=self.device)
            for piece, x in self.chunks(self.dim):
                held[piece] = x
            self.held = held
        return self.held


def centred_rows(x: Tensor | NDArray[Any], device: torch.device, *, shift: Tensor | None = None) -> Rows:
    """Check features and prepare their rows.

    Parameters
    ----------
    x : tensor or ndarray of shape (N, d)
        Features.
    device : torch.device
        Device that computes.
    shift : tensor of shape (d,), optional
        What is subtracted from each row. Default: the mean.

    Returns
    -------
    Rows
        All rows, kept in memory if they are small.

    Raises
    ------
    DataError
        `features-shape`, `features-dtype`, `features-not-finite` or `feature-scale`.
    """
    x = x.detach() if isinstance(x, Tensor) else np.asanyarray(x)
    if isinstance(x, Tensor) and x.device.type == "mps":  # which has no float64
        x = x.cpu()
    if x.ndim != 2 or 0 in x.shape:
        raise DataError(
            f"Features must have one row per sample, (N, d) with N and d above 0; got shape {tuple(x.shape)}.",
            code="features-shape",
            shape=tuple(x.shape),
        )
    kind = str(x.dtype).removeprefix("torch.")
    if not kind.startswith(("float", "bfloat", "int", "uint")):
        raise DataError(f"Features must be real numbers; got {kind}.", code="features-dtype", dtype=kind)
    total, largest = _total(x)
    if not largest < LARGEST or 0 < largest < SMALLEST:
        raise _unusable(x, largest)
    if shift is None:
        shift = torch.from_numpy(total / len(x))
    narrow = kind in ("float16", "bfloat16", "float32")
    rows = Rows(x, shift.to(device, torch.float32 if narrow else torch.float64), index=None, held=None)
    if len(rows) <= n_fitting(rows.dim):
        rows.values()
    return rows


def n_fitting(dim: int) -> int:
    """Return the number of rows that are kept in memory.

    Parameters
    ----------
    dim : int
        Number of features.

    Returns
    -------
    int
        Number of rows.
    """
    return HOLD_BYTES // (4 * dim)


def _total(x: Tensor | NDArray[Any]) -> tuple[NDArray[np.float64], float]:
    """Sum of all rows (d,) and the largest magnitude, which is infinite if there is NaN or infinity."""
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
            drop_pages(x)
        if not np.isfinite(total).all():
            return total, np.inf
    return total, largest


def _unusable(x: Tensor | NDArray[Any], largest: float) -> DataError:
    """The error that names the first row with NaN or infinity, or says that values are too large or too small."""
    for start in range(0, len(x), 4096):
        part = x[start : start + 4096]
        is_fine = np.isfinite(part.double().cpu().numpy() if isinstance(part, Tensor) else part).all(axis=1)
        if not is_fine.all():
            row = start + int(is_fine.argmin())
            return DataError(
                f"Row {row} of the features contains NaN or infinity.",
                fix="Check how the features were computed.",
                code="features-not-finite",
                row=row,
            )
    return wrong_scale(f"The largest feature has a magnitude of {largest:.1e}.")


def _read(x: Tensor | NDArray[Any], start: int, stop: int, shift: Tensor) -> Tensor:
    """Rows start to stop minus shift, in float32 on the device of shift."""
    if isinstance(x, Tensor):
        return (x[start:stop].to(shift) - shift).float()
    part = torch.from_numpy(np.array(x[start:stop], dtype=np.float64 if shift.dtype == torch.float64 else np.float32))
    drop_pages(x)
    return part.to(shift.device).sub_(shift).float()
