"""The contrastive loss: InfoNCE (Eq. 1) and SupCon (Eq. 2) differ only in which rows belong together."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["contrastive_loss"]


def contrastive_loss(
    z: Tensor,
    ids: Tensor,
    *,
    temperature: float,
    views: Tensor | None = None,
    samples: Tensor | None = None,
    left_out: Tensor | None = None,
) -> Tensor:
    """Negative log of the softmax over an anchor's candidates, averaged over its positives and then over anchors.

    By default the candidates of a row are all other rows, and its positives those with the same id: SimCLR's form, as in the
    released code. A row without a positive is no anchor.

    Parameters
    ----------
    z : tensor of shape (n_rows, n_features)
        Rows of unit length, of all views.
    ids : tensor of shape (n_rows,)
        Number of the sample (InfoNCE, Eq. 1) or of its class (SupCon, Eq. 2).
    temperature : float
        Temperature of the softmax.
    views : tensor of shape (n_rows,), optional
        Number of the view of each row. If given, only rows of other views are candidates, as in Eqs. 1 and 2.
    samples : tensor of shape (n_rows,), optional
        Number of the sample of each row. If given, only rows of other samples are positives, the paper's N_i in Eq. 2.
    left_out : tensor of shape (n_rows,), optional
        Number of the sample of each row. If given, rows of the anchor's own sample are left out of the denominator, as
        Eqs. 1 and 2 are printed (n != i). The loss may then be negative.

    Returns
    -------
    tensor of shape ()
        The loss; without any anchor a zero that keeps the graph.

    Examples
    --------
    Two views of two samples; the views of a sample are the same, the samples are orthogonal:

    >>> z = torch.eye(2).repeat(2, 1)
    >>> round(contrastive_loss(z, torch.tensor([0, 1, 0, 1]), temperature=1.0).item(), 4)  # log(e + 2) - 1
    0.5514
    """
    others = torch.arange(len(z), device=z.device) if views is None else views
    candidates = _differ(others)  # (M, M)
    positives = candidates & ~_differ(ids)
    if samples is not None:
        positives &= _differ(samples)
    if left_out is not None:
        candidates = candidates & _differ(left_out)
    is_anchor = positives.any(dim=1) & candidates.any(dim=1)
    if not is_anchor.any():
        return z.sum() * 0
    candidates, positives = candidates[is_anchor], positives[is_anchor]  # (A, M)
    similarity = z[is_anchor] @ z.T / temperature
    log_denominator = similarity.masked_fill(~candidates, -torch.inf).logsumexp(dim=1)  # (A,)
    mean_positive = (similarity * positives).sum(dim=1) / positives.sum(dim=1)
    return (log_denominator - mean_positive).mean()


def _differ(x: Tensor) -> Tensor:
    """Where the values of row and column differ: (M,) -> (M, M)."""
    return x[:, None] != x[None, :]
