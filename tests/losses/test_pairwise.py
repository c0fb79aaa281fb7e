"""Pair losses against double loops in plain Python, and where a probability is 0 or 1."""

from math import log

import pytest
import torch
from torch import Tensor

from newkind.losses import pair_loss, partner_loss


def predictions(n_rows: int, n_classes: int = 4, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (3 * torch.randn(n_rows, n_classes, dtype=torch.float64, generator=generator)).softmax(dim=1)


def dot(a: list[float], b: list[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def test_pairs_are_the_double_loop() -> None:
    p, other = predictions(6), predictions(6, seed=1)
    same = torch.rand(6, 6, generator=torch.Generator().manual_seed(2)) < 0.4
    losses = []
    for i in range(6):
        for j in range(6):
            likely = dot(p[i].tolist(), other[j].tolist())
            losses.append(-log(likely if same[i, j] else 1 - likely))
    assert pair_loss(p, other, same).item() == pytest.approx(sum(losses) / 36, rel=1e-5)


def test_partners_are_the_loop() -> None:
    p, partner = predictions(7), predictions(7, seed=1)
    expected = sum(-log(dot(a, b)) for a, b in zip(p.tolist(), partner.tolist(), strict=True)) / 7
    assert partner_loss(p.log(), partner.log()).item() == pytest.approx(expected, rel=1e-10)


def test_gradients() -> None:
    same = torch.eye(3) > 0
    raw = torch.randn(2, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    torch.autograd.gradcheck(lambda x: pair_loss(x[0].softmax(-1), x[1].softmax(-1), same), raw)
    torch.autograd.gradcheck(lambda x: partner_loss(x[0].log_softmax(-1), x[1].log_softmax(-1)), raw)


def test_certain_and_right_has_no_loss() -> None:
    sure = torch.eye(3)
    assert pair_loss(sure, sure, torch.eye(3) > 0).item() == pytest.approx(0, abs=1e-6)
    assert partner_loss(sure.clamp_min(1e-30).log(), sure.clamp_min(1e-30).log()).item() == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_certain_and_wrong_is_finite(scale: float) -> None:
    raw = (scale * torch.eye(3)).requires_grad_()
    for loss in (
        pair_loss(raw.softmax(-1), raw.softmax(-1), ~(torch.eye(3) > 0)),
        partner_loss(raw.log_softmax(-1), raw.roll(1, 0).log_softmax(-1)),
    ):
        (grad,) = torch.autograd.grad(loss, raw)
        assert loss.isfinite()
        assert grad.isfinite().all()


def test_a_probability_slightly_above_one_is_no_nan() -> None:
    p = torch.tensor([[1.0 + 3e-7, 0.0]])
    assert pair_loss(p, p, torch.tensor([[False]])).isfinite()


def test_a_tiny_agreement_still_has_a_gradient() -> None:
    """The gradient of -log(p . p') does not vanish where both are certain of different classes."""
    raw = torch.tensor([[60.0, 0.0]], requires_grad=True)
    partner_loss(raw.log_softmax(-1), torch.tensor([[0.0, 60.0]]).log_softmax(-1)).backward()
    assert raw.grad is not None
    assert raw.grad[0, 1].item() == pytest.approx(-0.5, rel=1e-3)


def test_half_precision_around_it_does_not_reach_the_pairs() -> None:
    p = predictions(5).float()
    same = torch.eye(5) > 0
    expected = pair_loss(p, p, same)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert pair_loss(p, p, same).item() == expected.item()


def test_an_empty_batch_is_a_zero_that_keeps_the_graph() -> None:
    p = torch.ones(0, 4, requires_grad=True)
    for loss in (pair_loss(p, p, torch.ones(0, 0, dtype=torch.bool)), partner_loss(p, p)):
        assert loss.item() == 0
        assert loss.requires_grad
        loss.backward()
