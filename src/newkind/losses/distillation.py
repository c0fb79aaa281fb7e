"""Self-distillation: each view learns the sharper prediction of another view of the same image."""

from __future__ import annotations

from torch import Tensor

from newkind.losses.swapped import swapped_prediction_loss
from newkind.losses.views import split_views

__all__ = ["self_distillation_loss"]


def self_distillation_loss(
    logits: Tensor, n_views: int, *, student_temperature: float, teacher_temperature: float
) -> Tensor:
    """Cross-entropy of the prediction p (Eq. 3) with the sharper prediction q' (Eq. 4) of another view.

    It is a mean over all ordered pairs of views and samples. The teacher is the same network in the same step, and no gradient
    flows through it.

    Parameters
    ----------
    logits : tensor of shape (n_views * n_samples, n_classes)
        Cosines, all samples of one view after the other.
    n_views : int
        Number of views, at least 2.
    student_temperature : float
        Temperature of p.
    teacher_temperature : float
        Temperature of q'.

    Returns
    -------
    tensor of shape ()
        Mean over ordered pairs of views and samples; for an empty batch a zero that keeps the graph.

    Raises
    ------
    ConfigError
        `too-few-views` if `n_views` is below 2.

    Examples
    --------
    >>> import torch
    >>> agree = torch.tensor([[1.0, -1.0], [1.0, -1.0]])  # one sample in two views
    >>> differ = torch.tensor([[1.0, -1.0], [-1.0, 1.0]])
    >>> temperatures = {"student_temperature": 0.1, "teacher_temperature": 0.05}
    >>> [abs(round(self_distillation_loss(logits, 2, **temperatures).item(), 3)) for logits in (agree, differ)]
    [0.0, 20.0]
    """
    by_view = split_views(logits, n_views)  # (V, B, K)
    targets = (by_view.detach() / teacher_temperature).softmax(dim=-1)
    return swapped_prediction_loss(by_view, targets, temperature=student_temperature)
