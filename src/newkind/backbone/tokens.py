"""What the frozen trunk hands to the tuned blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["EVERY_ROW", "TokenSource", "Tokens", "join_tokens"]

EVERY_ROW = slice(None)


@dataclass(frozen=True)
class Tokens:
    """The tokens that enter the first tuned block, for B views."""

    xhat: Tensor
    """(B, N, d): LayerNorm of the tokens without its affine part; the class token is the first."""
    cls: Tensor
    """(B, d): the raw class token."""
    moments: Tensor | None = None
    """(B, N, 2): mean and standard deviation of each raw token; only kept where more than one block is tuned."""

    def __len__(self) -> int:
        return len(self.cls)

    def raw(self) -> Tensor:
        """(B, N, d): the tokens themselves, from xhat and the moments."""
        if self.moments is None:
            raise ValueError("the raw tokens were not kept")
        return self.xhat * self.moments[..., 1:] + self.moments[..., :1]

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> Tokens:
        moved = (
            t if t is None else t.to(device, non_blocking=non_blocking) for t in (self.xhat, self.cls, self.moments)
        )
        return Tokens(*moved)  # type: ignore[arg-type]

    def float(self) -> Tokens:
        """In fp32: the cache keeps half precision."""
        return Tokens(self.xhat.float(), self.cls.float(), None if self.moments is None else self.moments.float())


def join_tokens(parts: list[Tokens]) -> Tokens:
    """One after the other along the batch."""
    if len(parts) == 1:
        return parts[0]
    moments = [part.moments for part in parts if part.moments is not None]
    return Tokens(
        torch.cat([part.xhat for part in parts]),
        torch.cat([part.cls for part in parts]),
        torch.cat(moments) if moments else None,
    )


class TokenSource(Protocol):
    """Batches of tokens: from the cache or computed on the fly. A method does not know which."""

    @property
    def usable(self) -> NDArray[np.bool_]:
        """(N,): images that can be decoded."""
        ...

    def training_batches(
        self,
        batches: Iterator[NDArray[np.int64]],
        *,
        n_views: int,
        seed: tuple[int, ...],
        rows: slice = EVERY_ROW,
    ) -> Iterator[Tokens]:
        """For each batch of image numbers (B,), random views: Tokens of (n_views * B), view by view.

        `rows` are the rows of each batch that are wanted; what is drawn for them does not depend on it, so that several
        processes with a part each see what one process with all of it would.
        """
        ...

    def evaluation_batches(self, batches: Iterator[NDArray[np.int64]]) -> Iterator[Tokens]:
        """The evaluation view of each image of a batch: Tokens of (B)."""
        ...
