"""The adaptive margin against plain computations."""

from math import exp, log

import pytest
import torch

from newkind.losses import confidence_sums, margin_loss, supervised_loss


def cosines(n_rows: int) -> torch.Tensor:
    return 2 * torch.rand(n_rows, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) - 1


@pytest.mark.parametrize("margin", [0.0, 0.3, 0.5])
def test_is_the_loop(margin: float) -> None:
    logits, labels = cosines(5), torch.tensor([0, 3, 1, 1, 2])
    losses = []
    for row, label in zip(logits.tolist(), labels.tolist(), strict=True):
        z = [10 * x + (10 * margin if k == label else 0) for k, x in enumerate(row)]  # 10 * cosine, raised by 10 m
        losses.append(-log(exp(z[label]) / sum(exp(x) for x in z)))
    expected = sum(losses) / 5
    for given in (margin, torch.tensor(margin, dtype=torch.float64)):
        assert margin_loss(logits, labels, margin=given, temperature=0.1).item() == pytest.approx(expected, rel=1e-6)


def test_a_margin_lowers_loss_and_gradient() -> None:
    logits, labels = cosines(5).requires_grad_(), torch.tensor([0, 3, 1, 1, 2])
    plain = supervised_loss(logits, labels, temperature=0.1)
    raised = margin_loss(logits, labels, margin=0.5, temperature=0.1)
    assert raised < plain
    (small,), (large,) = torch.autograd.grad(raised, logits), torch.autograd.grad(plain, logits)
    assert small.abs().sum() < large.abs().sum()


def test_without_rows_it_is_a_zero_that_keeps_the_graph() -> None:
    logits = torch.ones(0, 4, requires_grad=True)
    loss = margin_loss(logits, torch.empty(0, dtype=torch.long), margin=0.5, temperature=0.1)
    loss.backward()
    assert loss.item() == 0


def test_confidence_adds_up_over_batches() -> None:
    p = (cosines(9) / 0.1).softmax(dim=1).requires_grad_()
    whole = confidence_sums(p)
    torch.testing.assert_close(whole, torch.tensor([sum(max(row) for row in p.tolist()), 9.0]))
    torch.testing.assert_close(confidence_sums(p[:4]) + confidence_sums(p[4:]) + confidence_sums(p[:0]), whole)
    assert not whole.requires_grad
