"""Batches of several views of the same samples."""

from __future__ import annotations

from torch import Tensor

from newkind.errors import ConfigError

__all__ = ["split_views"]


def split_views(rows: Tensor, n_views: int) -> Tensor:
    """Split the rows of several views.

    Parameters
    ----------
    rows : tensor of shape (n_views * n_samples, n_classes)
        Rows, all samples of one view after the other.
    n_views : int
        Number of views, at least 2.

    Returns
    -------
    tensor of shape (n_views, n_samples, n_classes)
        The rows of each view.

    Raises
    ------
    ConfigError
        `too-few-views` or `views-unequal`.
    """
    if n_views < 2:
        raise ConfigError(
            f"`n_views` must be at least 2, because a view is compared with another one; got {n_views}.",
            code="too-few-views",
            n_views=n_views,
        )
    if len(rows) % n_views:
        raise ConfigError(
            f"{len(rows)} rows cannot be split into {n_views} views of the same size.",
            code="views-unequal",
            n_rows=len(rows),
            n_views=n_views,
        )
    return rows.reshape(n_views, -1, rows.shape[1])
