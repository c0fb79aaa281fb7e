"""Memberships of samples in the categories of a mixture, summed in parts."""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

__all__ = ["FreeRows", "UnitRows", "labelled_sums", "membership_sums", "row_pairs", "rows_at_once"]

CHUNK = 1 << 22
"""Number of memberships computed at once."""
HELD = 1 << 25
"""Number of features, and of labels in one-hot form, that are copied at once."""


class UnitRows(Protocol):
    """Rows (n, d) of unit length: a tensor, or an object that computes them when they are read."""

    @property
    def shape(self) -> torch.Size:
        """Number of rows and of features."""
        ...

    def __len__(self) -> int: ...

    def __getitem__(self, index: Any, /) -> Tensor: ...


def rows_at_once(n_categories: int) -> int:
    """Number of samples whose memberships in so many categories are computed at once."""
    return max(CHUNK // max(n_categories, 1), 1)


def row_pairs(forbidden: Tensor | None, free: Tensor) -> Tensor:
    """Forbidden pairs (m, 2) with rows among the unlabelled samples instead of all."""
    if forbidden is None or not len(forbidden):
        return free.new_zeros(0, 2, dtype=torch.int64)
    pairs = forbidden.to(free.device)
    pairs = pairs[free[pairs[:, 0]]]
    return torch.stack([(free.cumsum(0) - 1)[pairs[:, 0]], pairs[:, 1]], dim=1)


class FreeRows:
    """The unlabelled rows of z (n, d). They are copied once, unless they are many."""

    def __init__(self, z: UnitRows, free: Tensor) -> None:
        self.places = None if bool(free.all()) else free.nonzero().squeeze(1)
        self.n_rows = len(z) if self.places is None else len(self.places)
        self.rows = z
        if self.places is not None and self.n_rows * z.shape[1] <= HELD:
            self.rows, self.places = z[self.places], None

    def part(self, start: int, size: int) -> Tensor:
        """Rows (b, d) from `start` on."""
        return self.at(slice(start, start + size))

    def at(self, index: slice | Tensor) -> Tensor:
        """Rows (m, d) with these numbers."""
        return self.rows[index] if self.places is None else self.rows[self.places[index]]


def labelled_sums(z: UnitRows, labels: Tensor, directions: Tensor) -> tuple[Tensor, Tensor]:
    """Sums (K, d) of the labelled rows of z (n, d), and their numbers (K,), for directions (K, d)."""
    sums, counts = torch.zeros_like(directions), directions.new_zeros(len(directions))
    for place in torch.split((labels >= 0).nonzero().squeeze(1), max(HELD // max(directions.shape), 1)):
        given = F.one_hot(labels[place], len(directions)).to(directions)  # (labelled, K)
        sums += given.T @ z[place]
        counts += given.sum(dim=0)
    return sums, counts


def membership_sums(rows: FreeRows, c: Tensor, b: Tensor, temperature: float, never: Tensor) -> tuple[Tensor, Tensor]:
    """Sums (K, d) of rows (n, d) weighted by membership, and sums (K,) of memberships, without forbidden pairs (m, 2)."""
    sums, members, size = torch.zeros_like(c), torch.zeros_like(b), rows_at_once(len(c))
    for start in range(0, rows.n_rows, size):
        x = rows.part(start, size)
        logits = torch.addmm(b, x, c.T / temperature)
        if len(never):
            own = never[(never[:, 0] >= start) & (never[:, 0] < start + size)]
            logits[own[:, 0] - start, own[:, 1]] = -torch.inf
        q = logits.softmax(dim=1)
        sums.addmm_(q.T, x)
        members += q.sum(dim=0)
    return sums, members
