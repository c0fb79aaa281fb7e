"""The supervised loss against a loop in plain Python."""

from math import exp, log

import pytest
import torch

from newkind.losses import supervised_loss

LOGITS = 2 * torch.rand(6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) - 1
LABELS = torch.tensor([0, 3, 1, 1, 2, 0])


def slowly(logits: list[list[float]], labels: list[int], t: float) -> float:
    losses = []
    for row, label in zip(logits, labels, strict=True):
        losses.append(-log(exp(row[label] / t) / sum(exp(x / t) for x in row)))
    return sum(losses) / len(losses)


@pytest.mark.parametrize("n_rows", [1, 6])
@pytest.mark.parametrize("temperature", [0.1, 1.0])
def test_is_the_loop(n_rows: int, temperature: float) -> None:
    loss = supervised_loss(LOGITS[:n_rows], LABELS[:n_rows], temperature=temperature)
    expected = slowly(LOGITS[:n_rows].tolist(), LABELS[:n_rows].tolist(), temperature)
    assert loss.item() == pytest.approx(expected, rel=1e-10)


def test_gradient() -> None:
    torch.autograd.gradcheck(lambda x: supervised_loss(x, LABELS, temperature=0.3), LOGITS.clone().requires_grad_())


def test_the_order_of_rows_does_not_matter() -> None:
    found = supervised_loss(LOGITS.flip(0), LABELS.flip(0), temperature=0.1)
    torch.testing.assert_close(found, supervised_loss(LOGITS, LABELS, temperature=0.1))


def test_a_single_class_is_certain() -> None:
    assert supervised_loss(LOGITS[:, :1], torch.zeros_like(LABELS), temperature=0.1).item() == 0


def test_a_batch_without_labels_is_a_zero_that_keeps_the_graph() -> None:
    logits = LOGITS.clone().requires_grad_()
    none = torch.zeros(6, dtype=torch.bool)
    loss = supervised_loss(logits[none], LABELS[none], temperature=0.1)
    loss.backward()
    assert loss.item() == 0
    assert logits.grad is not None
    assert logits.grad.eq(0).all()


@pytest.mark.parametrize("temperature", [1e-6, 1e6])
def test_stays_finite(temperature: float) -> None:
    logits = LOGITS.float().requires_grad_()
    loss = supervised_loss(logits, LABELS, temperature=temperature)
    loss.backward()
    assert loss.isfinite()
    assert logits.grad is not None
    assert logits.grad.isfinite().all()
