"""The mean-entropy penalty against a loop in plain Python, and where a class is never predicted."""

from math import log

import pytest
import torch
from torch import Tensor

from newkind.losses import mean_entropy_penalty


def predictions(n_rows: int, n_classes: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (3 * torch.randn(n_rows, n_classes, dtype=torch.float64, generator=generator)).softmax(dim=1)


def slowly(rows: list[list[float]]) -> float:
    entropy = 0.0
    for k in range(len(rows[0])):
        mean = sum(row[k] for row in rows) / len(rows)
        if mean > 0:
            entropy -= mean * log(mean)
    return log(len(rows[0])) - entropy


@pytest.mark.parametrize(("n_rows", "n_classes"), [(1, 2), (5, 3), (40, 17), (6, 1)])
def test_is_the_loop(n_rows: int, n_classes: int) -> None:
    rows = predictions(n_rows, n_classes)
    assert mean_entropy_penalty(rows).item() == pytest.approx(slowly(rows.tolist()), rel=1e-10, abs=1e-14)


def test_is_zero_for_a_uniform_mean_even_if_every_row_is_certain() -> None:
    assert mean_entropy_penalty(torch.eye(7)).item() == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_is_not_negative(seed: int) -> None:
    assert mean_entropy_penalty(predictions(30, 4, seed)).item() >= -1e-12


def test_one_class_for_all_is_log_k_with_a_finite_gradient() -> None:
    logits = torch.tensor([[1e4, 0.0, 0.0]] * 4, requires_grad=True)
    probabilities = logits.softmax(dim=1)
    assert probabilities[:, 1:].eq(0).all()
    probabilities.retain_grad()
    loss = mean_entropy_penalty(probabilities)
    loss.backward()
    assert loss.item() == pytest.approx(log(3))
    for grad in (probabilities.grad, logits.grad):
        assert grad is not None
        assert grad.isfinite().all()


def test_gradient() -> None:
    torch.autograd.gradcheck(mean_entropy_penalty, predictions(4, 5).requires_grad_())


def test_gradient_leads_to_a_uniform_mean() -> None:
    logits = torch.randn(6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    for _ in range(60):
        loss = mean_entropy_penalty(logits.softmax(dim=1))
        (grad,) = torch.autograd.grad(loss, logits)
        logits = (logits - 10 * grad).detach().requires_grad_()
    assert loss.item() == pytest.approx(0, abs=1e-4)


def test_the_order_of_rows_does_not_matter() -> None:
    rows = predictions(9, 4)
    torch.testing.assert_close(mean_entropy_penalty(rows.flip(0)), mean_entropy_penalty(rows))


def test_an_empty_batch_is_a_zero_that_keeps_the_graph() -> None:
    probabilities = torch.ones(0, 4, requires_grad=True)
    loss = mean_entropy_penalty(probabilities)
    loss.backward()
    assert loss.item() == 0
    assert probabilities.grad is not None
