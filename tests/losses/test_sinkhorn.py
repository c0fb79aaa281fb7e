"""Sinkhorn's marginals, its values against plain scaling, and self-labels against loops over pairs of views."""

from math import exp, log

import numpy as np
import pytest
import torch
from torch import Tensor

from newkind.losses import self_distillation_loss, self_label_loss, sinkhorn


def cosines(n_rows: int, n_classes: int = 5, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return 2 * torch.rand(n_rows, n_classes, dtype=torch.float64, generator=generator) - 1


def scaled(logits: np.ndarray, temperature: float, n_iterations: int) -> np.ndarray:
    """Sinkhorn-Knopp as in the textbook: columns of mass 1 / K, rows of mass 1 / M; at the end rows of mass 1."""
    q = np.exp(logits / temperature)
    m, k = q.shape
    for _ in range(n_iterations):
        for j in range(k):
            q[:, j] /= q[:, j].sum() * k
        for i in range(m):
            q[i] /= q[i].sum() * m
    return q * m


@pytest.mark.parametrize(("n_rows", "n_classes"), [(12, 5), (3, 7), (1, 4)])
@pytest.mark.parametrize("n_iterations", [1, 3, 20])
def test_is_the_plain_scaling(n_rows: int, n_classes: int, n_iterations: int) -> None:
    logits = cosines(n_rows, n_classes)
    found = sinkhorn(logits, temperature=0.2, n_iterations=n_iterations)
    np.testing.assert_allclose(found.numpy(), scaled(logits.numpy(), 0.2, n_iterations), rtol=2e-4, atol=1e-7)


@pytest.mark.parametrize(("n_rows", "n_classes"), [(40, 5), (6, 12)])
def test_marginals(n_rows: int, n_classes: int) -> None:
    few = sinkhorn(cosines(n_rows, n_classes).float(), n_iterations=3)
    torch.testing.assert_close(few.sum(dim=1), torch.ones(n_rows))  # rows are exact at any time
    many = sinkhorn(cosines(n_rows, n_classes).float(), temperature=0.5, n_iterations=300)
    torch.testing.assert_close(many.sum(dim=1), torch.ones(n_rows))
    torch.testing.assert_close(many.sum(dim=0), torch.full((n_classes,), n_rows / n_classes), rtol=1e-4, atol=1e-5)


def test_one_class_for_all_is_shared_out() -> None:
    logits = torch.zeros(8, 4)
    logits[:, 0] = 1  # plain softmax would give class 0 to everyone
    torch.testing.assert_close(sinkhorn(logits), torch.full((8, 4), 0.25))


def test_without_an_iteration_it_is_a_softmax() -> None:
    logits = cosines(6).float()
    torch.testing.assert_close(sinkhorn(logits, temperature=0.3, n_iterations=0), (logits / 0.3).softmax(dim=1))


@pytest.mark.parametrize("temperature", [1e-4, 0.05, 1e4])
def test_stays_finite_and_has_no_gradient(temperature: float) -> None:
    logits = (100 * cosines(30)).float().requires_grad_()
    found = sinkhorn(logits, temperature=temperature)
    assert found.isfinite().all()
    assert not found.requires_grad
    assert sinkhorn(logits[:0]).shape == (0, 5)


def slowly(logits: np.ndarray, n_views: int, labels: list[int] | None = None, over: str = "unlabelled") -> float:
    """Loops over ordered pairs of views, samples and classes."""
    views = np.split(logits, n_views)
    part = [i for i in range(len(views[0])) if labels is None or labels[i] < 0 or over == "all"]
    targets = [np.zeros_like(view) for view in views]
    for target, view in zip(targets, views, strict=True):
        target[part] = scaled(view[part], 0.05, 3)
    losses = []
    for v in range(n_views):
        for w in range(n_views):
            for i in range(len(views[0])):
                if v != w:
                    weights = [exp(x / 0.1) for x in views[w][i]]
                    target = targets[v][i]
                    if labels is not None and labels[i] >= 0:
                        target = np.eye(logits.shape[1])[labels[i]]
                    losses.append(-sum(q * log(x / sum(weights)) for q, x in zip(target, weights, strict=True)))
    return float(np.mean(losses))


@pytest.mark.parametrize("n_views", [2, 3])
@pytest.mark.parametrize("labels", [None, [-1, 2, -1, 0, -1, -1], [-1] * 6, [1] * 6])
@pytest.mark.parametrize("over", ["unlabelled", "all"])
def test_self_labels_are_the_loop(n_views: int, labels: list[int] | None, over: str) -> None:
    logits = cosines(n_views * 6, 4)
    given = None if labels is None else torch.tensor(labels)
    loss = self_label_loss(logits, n_views, student_temperature=0.1, labels=given, over=over)
    assert loss.item() == pytest.approx(slowly(logits.numpy(), n_views, labels, over), rel=1e-9)


def test_gradient_is_that_of_fixed_targets() -> None:
    logits = cosines(12).requires_grad_()
    self_label_loss(logits, 2, student_temperature=0.1).backward()
    with torch.no_grad():
        q = torch.cat([sinkhorn(view) for view in logits.chunk(2)]).roll(6, 0)
        p = (logits / 0.1).softmax(dim=1)
    torch.testing.assert_close(logits.grad, (p - q) / 0.1 / 12, rtol=1e-6, atol=1e-7)


def test_it_is_self_distillation_with_other_targets() -> None:
    logits = cosines(8)
    loss = self_label_loss(logits, 2, student_temperature=0.1, sinkhorn_temperature=0.04, n_iterations=0)
    expected = self_distillation_loss(logits, 2, student_temperature=0.1, teacher_temperature=0.04)
    torch.testing.assert_close(loss, expected, rtol=1e-6, atol=1e-6)


def test_an_empty_batch_is_a_zero_that_keeps_the_graph() -> None:
    logits = torch.ones(0, 4, requires_grad=True)
    loss = self_label_loss(logits, 2, student_temperature=0.1, labels=torch.empty(0, dtype=torch.long))
    loss.backward()
    assert loss.item() == 0
    assert logits.grad is not None
