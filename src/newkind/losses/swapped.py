"""Swapped prediction: each view predicts the target of another view of the same image."""

from __future__ import annotations

from itertools import permutations

import torch
from torch import Tensor

from newkind.errors import ConfigError

__all__ = ["swapped_prediction_loss"]


def swapped_prediction_loss(logits: Tensor, targets: Tensor, *, temperature: float) -> Tensor:
    """Cross-entropy of each view's prediction with the target of another view.

    It is a mean over all ordered pairs of views and samples. No gradient flows through the targets.

    Parameters
    ----------
    logits : tensor of shape (n_views, n_samples, n_classes)
        Cosines of at least two views.
    targets : tensor of shape (n_views, n_samples, n_classes)
        Probabilities that the other views should predict.
    temperature : float
        Temperature of the predictions.

    Returns
    -------
    tensor of shape ()
        Mean of the cross-entropies; for an empty batch a zero that keeps the graph.

    Raises
    ------
    ConfigError
        `too-few-views` if there are fewer than two views.

    Examples
    --------
    >>> logits = torch.zeros(2, 1, 2)  # undecided between two classes
    >>> round(swapped_prediction_loss(logits, torch.tensor([[[1.0, 0.0]], [[1.0, 0.0]]]), temperature=0.1).item(), 4)
    0.6931
    """
    if len(logits) < 2:
        raise ConfigError(
            f"There must be at least 2 views, because a view predicts the target of another one; got {len(logits)}.",
            code="too-few-views",
            n_views=len(logits),
        )
    log_p, fixed = (logits / temperature).log_softmax(dim=-1), targets.detach()
    pairs = list(permutations(range(len(logits)), 2))
    total = torch.stack([-(fixed[teacher] * log_p[student]).sum() for teacher, student in pairs]).sum()
    return total / max(len(pairs) * logits.shape[1], 1)
