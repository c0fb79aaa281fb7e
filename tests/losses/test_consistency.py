"""The consistency of views against a loop, and the growth of its weight."""

from math import exp

import pytest
import torch
from torch.nn import functional as F

from newkind.losses import consistency_loss, ramp_up


def predictions(n_rows: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(n_rows, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).softmax(dim=1)


def test_two_views_are_the_mean_squared_error() -> None:
    p = predictions(10)
    torch.testing.assert_close(consistency_loss(p, 2), F.mse_loss(p[:5], p[5:]))


def test_three_views_are_the_loop() -> None:
    p = predictions(12).view(3, 4, 4).tolist()
    squares = [(p[a][i][k] - p[b][i][k]) ** 2 for a, b in ((0, 1), (0, 2), (1, 2)) for i in range(4) for k in range(4)]
    assert consistency_loss(predictions(12), 3).item() == pytest.approx(sum(squares) / len(squares), rel=1e-10)


def test_both_views_have_a_gradient() -> None:
    p = predictions(4).requires_grad_()
    consistency_loss(p, 2).backward()
    torch.testing.assert_close(p.grad[:2], -p.grad[2:])
    assert p.grad.abs().sum() > 0


def test_an_empty_batch_is_a_zero_that_keeps_the_graph() -> None:
    p = torch.ones(0, 4, requires_grad=True)
    loss = consistency_loss(p, 2)
    loss.backward()
    assert loss.item() == 0


def test_ramp_up() -> None:
    assert ramp_up(0, n_epochs=50) == pytest.approx(exp(-5))
    assert ramp_up(25, n_epochs=50) == pytest.approx(exp(-1.25))
    assert ramp_up(50, n_epochs=50) == ramp_up(180, n_epochs=50) == ramp_up(0, n_epochs=0) == 1
    growing = [ramp_up(epoch, n_epochs=10) for epoch in range(12)]
    assert growing == sorted(growing)
