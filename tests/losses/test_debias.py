"""Debiased pseudo-labels against plain computations, over a few steps and for degenerate batches."""

from itertools import permutations

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from newkind.losses import pseudo_label_loss, pseudo_labels, running_mean


def logits(n_rows: int, n_classes: int = 3, seed: int = 0) -> torch.Tensor:
    return 2 * torch.randn(n_rows, n_classes, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def test_running_mean_over_steps() -> None:
    mean, expected = torch.full((3,), 1 / 3, dtype=torch.float64), np.full(3, 1 / 3)
    for step in range(4):
        p = logits(5 + step, seed=step).softmax(dim=1)
        mean = running_mean(mean, p.sum(dim=0), torch.tensor(5.0 + step), momentum=0.9)
        expected = 0.9 * expected + 0.1 * np.mean(p.numpy(), axis=0)
    np.testing.assert_allclose(mean.numpy(), expected, rtol=1e-12)
    assert mean.sum().item() == pytest.approx(1)
    torch.testing.assert_close(running_mean(mean, torch.zeros(3), torch.tensor(0.0), momentum=0.9), mean)


def test_pseudo_labels_are_the_loop() -> None:
    z, q = logits(40), np.array([0.7, 0.2, 0.1])
    found, sure = pseudo_labels(z, torch.from_numpy(q), strength=0.8, threshold=0.7)
    for row, label, is_sure in zip(z.numpy(), found.tolist(), sure.tolist(), strict=True):
        p = softmax(row - 0.8 * np.log(q))
        assert label == int(p.argmax())
        assert is_sure == (p.max() >= 0.7)
    assert 0 < sure.sum() < 40
    plain, _ = pseudo_labels(z, torch.from_numpy(q), strength=0.0, threshold=0.7)
    assert (plain == z.argmax(dim=1)).all()
    assert (found == 0).sum() < (plain == 0).sum()  # the favoured class is given less often


def test_the_loss_is_the_loop() -> None:
    z, q = logits(9), torch.tensor([0.6, 0.3, 0.1], dtype=torch.float64)
    labels, sure = torch.tensor([0, 1, 2, 2, 2, 0, 1, 1, 0]), torch.tensor([1, 0, 1, 0, 0, 1, 1, 1, 0]) > 0
    total = 0.0
    for teacher, student in permutations(range(3), 2):
        for i in range(3):
            p = softmax(z[3 * student + i].numpy() + 0.5 * np.log(q.numpy()))
            if sure[3 * teacher + i]:
                total -= np.log(p[labels[3 * teacher + i]])
    found = pseudo_label_loss(z, labels, sure, q, 3, strength=0.5)
    assert found.item() == pytest.approx(total / (6 * 3), rel=1e-10)


def test_without_bias_it_is_a_cross_entropy_with_the_other_view() -> None:
    z, labels = logits(8), torch.tensor([0, 1, 2, 0, 0, 1, 2, 1])
    uniform = torch.full((3,), 1 / 3, dtype=torch.float64)
    found = pseudo_label_loss(z, labels, torch.ones(8) > 0, uniform, 2, strength=1.0)
    torch.testing.assert_close(found, F.cross_entropy(z, labels.roll(4)))


def test_gradient_and_what_is_unsure_has_none() -> None:
    z, q = logits(4).requires_grad_(), torch.tensor([0.6, 0.3, 0.1], dtype=torch.float64)
    labels, sure = torch.tensor([0, 1, 2, 2]), torch.tensor([True, False, False, False])
    torch.autograd.gradcheck(lambda x: pseudo_label_loss(x, labels, sure, q, 2, strength=0.5), z)
    pseudo_label_loss(z, labels, sure, q, 2, strength=0.5).backward()
    assert z.grad.abs().sum(dim=1).gt(0).tolist() == [False, False, True, False]  # the other view of sample 0
    own, _ = pseudo_labels(z, q, strength=0.5, threshold=0.7)
    assert not own.requires_grad


def test_a_class_that_is_never_predicted_keeps_everything_finite() -> None:
    q = torch.tensor([1.0, 0.0, 0.0])
    z = logits(4).float().requires_grad_()
    labels, sure = pseudo_labels(z, q, strength=1.0, threshold=0.7)
    loss = pseudo_label_loss(z, labels, sure, q, 2, strength=1.0)
    loss.backward()
    assert loss.isfinite()
    assert z.grad.isfinite().all()


def test_an_empty_batch_is_a_zero_that_keeps_the_graph() -> None:
    z, q = torch.ones(0, 3, requires_grad=True), torch.full((3,), 1 / 3)
    labels, sure = pseudo_labels(z, q, strength=0.4, threshold=0.7)
    loss = pseudo_label_loss(z, labels, sure, q, 2, strength=0.4)
    loss.backward()
    assert loss.item() == 0
