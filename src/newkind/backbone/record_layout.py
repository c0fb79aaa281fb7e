"""Layout of stored tokens: which numbers the record of an image contains, and in which precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict

import numpy as np
import torch
from numpy.typing import NDArray

from newkind.backbone.tokens import Tokens
from newkind.errors import CacheError

__all__ = ["LayoutFile", "RecordLayout"]

LARGEST = 10**6
"""Largest number of views, tokens and dimensions; more are damage, and would not fit into memory."""


class LayoutFile(TypedDict):
    """A layout in meta.json."""

    n_views: int
    n_tokens: int
    dim: int
    dtype: NotRequired[str]
    keep_moments: NotRequired[bool]
    keep_sizes: NotRequired[bool]


@dataclass(frozen=True, kw_only=True)
class RecordLayout:
    """Layout of the record of one image: tokens of its evaluation view and V random views, or the feature of one view.

    Parameters
    ----------
    n_views : int
        Number of random views, V; a record has V + 1 views.
    n_tokens : int
        Number of tokens per view, N; 0 for a class feature alone, which is stored in single precision.
    dim : int
        Dimension of a token, d.
    dtype : {"float16", "int8", "float32"}, default="float16"
        Storage dtype; int8 has one scale per token. Features are always float32.
    keep_moments : bool, default=False
        Whether the moments of the tokens are stored.
    keep_sizes : bool, default=False
        Whether the sizes of merged tokens are stored.

    Raises
    ------
    CacheError
        With code `unknown-choice` for another dtype, `out-of-range` for fewer than 2 views.
    """

    n_views: int
    n_tokens: int
    dim: int
    dtype: str = "float16"
    keep_moments: bool = False
    keep_sizes: bool = False

    def __post_init__(self) -> None:
        if not all(0 <= number <= LARGEST for number in (self.n_views, self.n_tokens, self.dim)):
            raise CacheError(f"A record cannot have this layout: {self}.", code="out-of-range", setting="layout")
        if self.dtype not in ("float16", "int8") and self.n_tokens:
            raise CacheError(
                f"`dtype` must be float16 or int8, got {self.dtype}.", code="unknown-choice", setting="dtype"
            )
        if self.n_tokens and self.n_views < 2:
            raise CacheError(
                f"`views` must be at least 2, because a training step needs two; got {self.n_views}.",
                code="out-of-range",
                setting="views",
            )

    def view_dtype(self) -> np.dtype[np.void]:
        """NumPy dtype of one stored view.

        Returns
        -------
        numpy.dtype
        """
        if not self.n_tokens:
            return np.dtype([("cls", "<f4", (self.dim,))])
        fields: list[Any] = [("xhat", "<f2" if self.dtype == "float16" else "i1", (self.n_tokens, self.dim))]
        if self.dtype == "int8":
            fields.append(("scale", "<f4", (self.n_tokens,)))
        fields.append(("cls", "<f4", (self.dim,)))
        if self.keep_moments:
            fields.append(("moments", "<f4", (self.n_tokens, 2)))
        if self.keep_sizes:
            fields.append(("sizes", "<u2", (self.n_tokens,)))
        return np.dtype(fields, align=True)

    @property
    def record_bytes(self) -> int:
        """Size of a record in bytes."""
        return (self.n_views + 1) * self.view_dtype().itemsize

    def pack(self, tokens: Tokens) -> NDArray[np.void]:
        """Convert tokens to stored views.

        Parameters
        ----------
        tokens : Tokens of R * (V + 1) views
            All views of R images, image by image.

        Returns
        -------
        ndarray of shape (R, V + 1)
        """
        packed = np.zeros(len(tokens), dtype=self.view_dtype())
        packed["cls"] = tokens.cls.float().cpu().numpy()
        if not self.n_tokens:
            return packed.reshape(-1, self.n_views + 1)
        xhat = tokens.xhat.float().cpu()
        if self.dtype == "int8":
            scale = xhat.abs().amax(dim=-1).clamp_min(1e-12) / 127  # (B, N)
            packed["xhat"] = (xhat / scale[..., None]).round().to(torch.int8).numpy()
            packed["scale"] = scale.numpy()
        else:
            packed["xhat"] = xhat.to(torch.float16).numpy()
        if self.keep_moments and tokens.moments is not None:
            packed["moments"] = tokens.moments.float().cpu().numpy()
        if self.keep_sizes and tokens.sizes is not None:
            packed["sizes"] = tokens.sizes.cpu().numpy()
        return packed.reshape(-1, self.n_views + 1)

    def unpack(self, packed: NDArray[np.void]) -> Tokens:
        """Convert stored views to tokens.

        Parameters
        ----------
        packed : ndarray of shape (B,)
            Stored views.

        Returns
        -------
        Tokens of B views
            In fp32.
        """
        cls = torch.from_numpy(packed["cls"]).clone()
        if not self.n_tokens:
            return Tokens.of_features(cls)
        xhat = torch.from_numpy(packed["xhat"]).float()
        if self.dtype == "int8":
            xhat *= torch.from_numpy(packed["scale"])[..., None]
        moments = torch.from_numpy(packed["moments"]).clone() if self.keep_moments else None
        sizes = torch.from_numpy(packed["sizes"].astype(np.float32)) if self.keep_sizes else None
        return Tokens(xhat, cls, moments, sizes)
