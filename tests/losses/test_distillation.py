"""Self-distillation against loops over pairs of views, samples and classes in plain Python."""

from math import exp, log

import pytest
import torch
from torch import Tensor

from error_codes import raises
from newkind.errors import ConfigError
from newkind.losses import self_distillation_loss


def softmax(row: list[float], t: float) -> list[float]:
    weights = [exp(x / t) for x in row]
    return [w / sum(weights) for w in weights]


def slowly(logits: list[list[float]], n_views: int, student: float, teacher: float) -> float:
    n = len(logits) // n_views
    losses = []
    for v in range(n_views):
        for w in range(n_views):
            for i in range(n):
                if v != w:
                    q, p = softmax(logits[v * n + i], teacher), softmax(logits[w * n + i], student)
                    losses.append(-sum(a * log(b) for a, b in zip(q, p, strict=True)))
    return sum(losses) / len(losses)


def cosines(n_rows: int, n_classes: int = 5, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return 2 * torch.rand(n_rows, n_classes, dtype=torch.float64, generator=generator) - 1


@pytest.mark.parametrize("n_views", [2, 3, 4])
@pytest.mark.parametrize("n_samples", [1, 6])
def test_is_the_loop(n_views: int, n_samples: int) -> None:
    logits = cosines(n_views * n_samples)
    loss = self_distillation_loss(logits, n_views, student_temperature=0.1, teacher_temperature=0.04)
    assert loss.item() == pytest.approx(slowly(logits.tolist(), n_views, 0.1, 0.04), rel=1e-10)


def test_no_gradient_flows_through_the_teacher() -> None:
    logits = cosines(8).requires_grad_()
    self_distillation_loss(logits, 2, student_temperature=0.1, teacher_temperature=0.04).backward()
    # The gradient of a cross-entropy with fixed targets: (p - q) / temperature, a mean over 2 pairs of 4 samples.
    with torch.no_grad():
        p, q = (logits / 0.1).softmax(1), (logits / 0.04).softmax(1).roll(4, 0)
    torch.testing.assert_close(logits.grad, (p - q) / 0.1 / 8)


def test_gradient() -> None:
    logits = cosines(6).requires_grad_()
    targets = (logits.detach() / 0.3).softmax(1)

    def with_fixed_targets(x: Tensor) -> Tensor:
        # The value of the loss changes with the teacher; its gradient, by design, does not.
        moved = self_distillation_loss(x, 2, student_temperature=0.5, teacher_temperature=0.3)
        log_p = (x.detach() / 0.5).log_softmax(1)
        drift = ((x.detach() / 0.3).softmax(1) - targets).roll(3, 0)
        return moved + (drift * log_p).sum() / 6

    torch.autograd.gradcheck(with_fixed_targets, logits)


def test_the_order_of_samples_and_of_views_does_not_matter() -> None:
    logits = cosines(12)
    temperatures = {"student_temperature": 0.1, "teacher_temperature": 0.05}
    expected = self_distillation_loss(logits, 3, **temperatures)
    by_view = logits.view(3, 4, -1)
    moved = by_view[torch.tensor([2, 0, 1])][:, torch.tensor([3, 1, 0, 2])]
    torch.testing.assert_close(self_distillation_loss(moved.reshape(12, -1), 3, **temperatures), expected)


def test_certain_views_that_agree_have_no_loss() -> None:
    logits = torch.tensor([[1.0, -1.0], [-1.0, 1.0]]).repeat(2, 1)
    assert self_distillation_loss(logits, 2, student_temperature=0.01, teacher_temperature=0.01).item() == 0


def test_an_empty_batch_is_a_zero_that_keeps_the_graph() -> None:
    logits = torch.ones(0, 4, requires_grad=True)
    loss = self_distillation_loss(logits, 2, student_temperature=0.1, teacher_temperature=0.04)
    loss.backward()
    assert loss.item() == 0
    assert logits.grad is not None


@pytest.mark.parametrize("student", [1e-6, 1e6])
@pytest.mark.parametrize("teacher", [1e-6, 1e6])
def test_stays_finite(student: float, teacher: float) -> None:
    logits = cosines(64).float().requires_grad_()
    loss = self_distillation_loss(logits, 2, student_temperature=student, teacher_temperature=teacher)
    loss.backward()
    assert loss.isfinite()
    assert logits.grad is not None
    assert logits.grad.isfinite().all()


@pytest.mark.parametrize("n_views", [0, 1])
def test_one_view_has_no_teacher(n_views: int) -> None:
    with raises(ConfigError, "too-few-views") as caught:
        self_distillation_loss(cosines(4), n_views, student_temperature=0.1, teacher_temperature=0.04)
    assert caught.value.facts == {"n_views": n_views}
