"""Swapped prediction against loops over pairs of views, samples and classes."""

import numpy as np
import pytest
import torch

from newkind.losses import self_label_loss, sinkhorn, swapped_prediction_loss


def batch(n_views: int, n_samples: int = 5, n_classes: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(n_views)
    logits, raw = torch.randn(2, n_views, n_samples, n_classes, dtype=torch.float64, generator=generator)
    return logits, raw.softmax(dim=-1)


@pytest.mark.parametrize("n_views", [2, 3, 4])
def test_is_the_loop(n_views: int) -> None:
    logits, targets = batch(n_views)
    losses = []
    for v in range(n_views):
        for w in range(n_views):
            for i in range(5):
                if v != w:
                    e = np.exp(logits[w, i].numpy() / 0.3)
                    losses.append(-(targets[v, i].numpy() * np.log(e / e.sum())).sum())
    found = swapped_prediction_loss(logits, targets, temperature=0.3)
    assert found.item() == pytest.approx(np.mean(losses), rel=1e-10)


def test_with_self_labels_it_is_the_self_label_loss() -> None:
    logits, _ = batch(2)
    found = swapped_prediction_loss(logits, torch.stack([sinkhorn(view) for view in logits]), temperature=0.1)
    torch.testing.assert_close(found, self_label_loss(logits.flatten(0, 1), 2, student_temperature=0.1))


def test_only_predictions_have_a_gradient() -> None:
    logits, targets = batch(2)
    targets.requires_grad_()
    torch.autograd.gradcheck(
        lambda x: swapped_prediction_loss(x, targets.detach(), temperature=0.5), logits.requires_grad_()
    )
    swapped_prediction_loss(logits, targets, temperature=0.5).backward()
    assert targets.grad is None


def test_an_empty_batch_is_a_zero_that_keeps_the_graph() -> None:
    logits = torch.ones(2, 0, 4, requires_grad=True)
    loss = swapped_prediction_loss(logits, torch.ones(2, 0, 4), temperature=0.1)
    loss.backward()
    assert loss.item() == 0
    assert logits.grad is not None
