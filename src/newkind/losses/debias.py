"""DebiasPL: pseudo-labels corrected for the network's preference for some classes, and a margin against it."""

from __future__ import annotations

from itertools import permutations

import torch
from torch import Tensor
from torch.nn import functional as F

from newkind.losses.views import split_views

__all__ = ["pseudo_label_loss", "pseudo_labels", "running_mean"]


def running_mean(mean: Tensor, total: Tensor, count: Tensor, *, momentum: float) -> Tensor:
    """Exponential moving average of the mean prediction: momentum * mean + (1 - momentum) * total / count.

    Parameters
    ----------
    mean : tensor of shape (n_classes,)
        The average so far.
    total : tensor of shape (n_classes,)
        Sum of the predictions of a batch.
    count : tensor of shape ()
        Number of predictions in the batch; if it is 0, the average is unchanged.
    momentum : float
        Weight of the average so far, between 0 and 1.

    Returns
    -------
    tensor of shape (n_classes,)
        The new average.

    Examples
    --------
    >>> running_mean(torch.tensor([0.5, 0.5]), torch.tensor([3.0, 1.0]), torch.tensor(4.0), momentum=0.5).tolist()
    [0.625, 0.375]
    """
    moved = momentum * mean + (1 - momentum) * total / count.clamp_min(1)
    return torch.where(count > 0, moved, mean)


def pseudo_labels(logits: Tensor, mean: Tensor, *, strength: float, threshold: float) -> tuple[Tensor, Tensor]:
    """Most likely classes of softmax(z - strength * log(mean)), and which of them are certain. No gradient.

    Parameters
    ----------
    logits : tensor of shape (n_rows, n_classes)
        Logits z, already divided by their temperature.
    mean : tensor of shape (n_classes,)
        Mean prediction of each class.
    strength : float
        Strength of the correction; 0 for none.
    threshold : float
        Probability from which a pseudo-label is used.

    Returns
    -------
    labels : tensor of int64, shape (n_rows,)
        The pseudo-labels.
    is_certain : tensor of bool, shape (n_rows,)
        Whether the probability reaches the threshold.

    Examples
    --------
    Class 0 is only slightly ahead, and predicted far too often:

    >>> labels, is_certain = pseudo_labels(
    ...     torch.tensor([[1.0, 0.9]]), torch.tensor([0.9, 0.1]), strength=1.0, threshold=0.7
    ... )
    >>> labels.tolist(), is_certain.tolist()
    ([1], [True])
    """
    debiased = logits.detach() - strength * _log(mean)
    top = debiased.softmax(dim=-1).max(dim=-1)
    return top.indices, top.values >= threshold


def pseudo_label_loss(
    logits: Tensor, labels: Tensor, is_certain: Tensor, mean: Tensor, n_views: int, *, strength: float
) -> Tensor:
    """Cross-entropy of z + strength * log(mean) with the pseudo-label of another view.

    It is a mean over all ordered pairs of views and samples. A sample that is not certain adds nothing but counts in the
    mean, as in FixMatch.

    Parameters
    ----------
    logits : tensor of shape (n_views * n_samples, n_classes)
        Logits z, already divided by their temperature, all samples of one view after the other.
    labels : tensor of int64, shape (n_views * n_samples,)
        Pseudo-labels, from `pseudo_labels`.
    is_certain : tensor of bool, shape (n_views * n_samples,)
        Which pseudo-labels are used.
    mean : tensor of shape (n_classes,)
        Mean prediction of each class.
    n_views : int
        Number of views, at least 2.
    strength : float
        Strength of the margin; 0 for none.

    Returns
    -------
    tensor of shape ()
        Mean cross-entropy; for an empty batch a zero that keeps the graph.

    Examples
    --------
    Two views of one sample; only the pseudo-label of the first view is certain, so it teaches the second one:

    >>> z = torch.tensor([[2.0, 0.0], [0.0, 0.0]], requires_grad=True)
    >>> labels, is_certain = torch.tensor([0, 0]), torch.tensor([True, False])
    >>> pseudo_label_loss(z, labels, is_certain, torch.tensor([0.5, 0.5]), 2, strength=0.0).backward()
    >>> z.grad.sign().tolist()
    [[0.0, 0.0], [-1.0, 1.0]]
    """
    raised = split_views(logits + strength * _log(mean), n_views)  # (V, M, K)
    labels, is_certain = labels.view(n_views, -1), is_certain.view(n_views, -1)  # (V, M)
    pairs = list(permutations(range(n_views), 2))
    costs = [F.cross_entropy(raised[s], labels[t], reduction="none") * is_certain[t] for t, s in pairs]  # (M,) each
    return torch.stack(costs).sum() / max(len(pairs) * labels.shape[1], 1)


def _log(mean: Tensor) -> Tensor:
    """Logarithm that is finite at 0."""
    return mean.clamp_min(torch.finfo(mean.dtype).tiny).log()
