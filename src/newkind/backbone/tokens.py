"""What the frozen trunk hands to the tuned blocks."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["Tokens"]


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
