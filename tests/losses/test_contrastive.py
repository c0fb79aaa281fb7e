"""The contrastive loss against a double loop in plain Python, and on every batch that could break it."""

from math import exp, log

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from newkind.losses import contrastive_loss

FORMS = [
    "SimCLR",
    "other views",
    "other samples",
    "other views and samples",
    "printed",
    "printed other views and samples",
]


def slowly(
    z: list[list[float]],
    ids: list[int],
    t: float,
    views: list[int] | None = None,
    samples: list[int] | None = None,
    left_out: list[int] | None = None,
) -> float:
    losses = []
    for i in range(len(z)):
        candidates = [a for a in range(len(z)) if a != i and (views is None or views[a] != views[i])]
        positives = [p for p in candidates if ids[p] == ids[i] and (samples is None or samples[p] != samples[i])]
        if positives:
            weight = {a: exp(sum(x * y for x, y in zip(z[i], z[a], strict=True)) / t) for a in candidates}
            total = sum(w for a, w in weight.items() if left_out is None or left_out[a] != left_out[i])
            losses.append(sum(-log(weight[p] / total) for p in positives) / len(positives))
    return sum(losses) / len(losses) if losses else 0.0


def batch(n_samples: int, n_views: int = 2, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """z (V * B, 5) float64 of length 1, samples (V * B,), views (V * B,)."""
    generator = torch.Generator().manual_seed(seed)
    z = F.normalize(torch.randn(n_views * n_samples, 5, dtype=torch.float64, generator=generator), dim=1)
    samples = torch.arange(n_samples).repeat(n_views)
    return z, samples, torch.arange(n_views).repeat_interleave(n_samples)


def narrowed(form: str, samples: Tensor, views: Tensor) -> dict[str, Tensor]:
    found = ({"views": views} if "views" in form else {}) | ({"samples": samples} if "samples" in form else {})
    return found | ({"left_out": samples} if "printed" in form else {})


@pytest.mark.parametrize("temperature", [0.07, 1.0])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n_views", [2, 3])
def test_is_the_double_loop(form: str, n_views: int, temperature: float) -> None:
    z, samples, views = batch(7, n_views)
    classes = torch.tensor([0, 1, 0, 2, 1, 0, 3]).repeat(n_views)
    for ids in (samples, classes):
        options = narrowed(form, samples, views)
        expected = slowly(z.tolist(), ids.tolist(), temperature, **{k: v.tolist() for k, v in options.items()})
        assert contrastive_loss(z, ids, temperature=temperature, **options).item() == pytest.approx(expected, rel=1e-10)


def test_infonce_is_cross_entropy_with_the_other_view() -> None:
    z, samples, views = batch(6)
    a, b = z.chunk(2)
    logits = a @ b.T / 0.07
    expected = (F.cross_entropy(logits, samples[:6]) + F.cross_entropy(logits.T, samples[:6])) / 2
    torch.testing.assert_close(contrastive_loss(z, samples, temperature=0.07, views=views), expected)


@pytest.mark.parametrize("form", FORMS)
def test_gradient(form: str) -> None:
    z, samples, views = batch(4)
    classes = torch.tensor([0, 1, 0, 2]).repeat(2)
    options = narrowed(form, samples, views)
    torch.autograd.gradcheck(
        lambda z: contrastive_loss(z, classes, temperature=0.5, **options), z.requires_grad_(), fast_mode=True
    )


def test_the_order_of_rows_does_not_matter() -> None:
    z, samples, views = batch(8)
    classes = torch.arange(16) % 8 % 3
    order = torch.from_numpy(np.random.default_rng(0).permutation(16))
    found = contrastive_loss(z[order], classes[order], temperature=0.07, views=views[order], samples=samples[order])
    torch.testing.assert_close(found, contrastive_loss(z, classes, temperature=0.07, views=views, samples=samples))


@pytest.mark.parametrize(
    ("n_rows", "ids"), [(0, []), (1, [0]), (4, [0, 1, 2, 3])], ids=["no row", "one row", "all ids differ"]
)
def test_without_a_positive_it_is_a_zero_that_keeps_the_graph(n_rows: int, ids: list[int]) -> None:
    z = torch.ones(n_rows, 3, requires_grad=True)
    loss = contrastive_loss(z, torch.tensor(ids, dtype=torch.long), temperature=0.07)
    loss.backward()
    assert loss.item() == 0
    assert z.grad is not None
    assert z.grad.eq(0).all()


def test_a_sole_sample_of_its_class_is_no_anchor_where_positives_are_other_samples() -> None:
    z, samples, views = batch(1)
    z.requires_grad_()
    loss = contrastive_loss(z, torch.zeros(2, dtype=torch.long), temperature=0.07, views=views, samples=samples)
    loss.backward()
    assert loss.item() == 0


def test_rows_of_one_view_have_no_candidates() -> None:
    z, samples, _ = batch(3)
    assert contrastive_loss(z, samples, temperature=0.07, views=torch.zeros(6)).item() == 0


def test_a_single_sample_in_two_views_is_certain() -> None:
    z, samples, _ = batch(1)
    assert contrastive_loss(z, samples, temperature=0.07).item() == pytest.approx(0)


def test_all_the_same_id_and_the_same_row_is_the_log_of_the_candidates() -> None:
    z = F.normalize(torch.ones(6, 3), dim=1)
    loss = contrastive_loss(z, torch.zeros(6), temperature=0.07)
    assert loss.item() == pytest.approx(log(5), rel=1e-6)


@pytest.mark.parametrize("temperature", [1e-6, 1e-3, 0.07, 1e6])
@pytest.mark.parametrize("form", FORMS)
def test_stays_finite(form: str, temperature: float) -> None:
    z, samples, views = batch(400)
    z = z.float().requires_grad_()
    loss = contrastive_loss(z, samples % 10, temperature=temperature, **narrowed(form, samples, views))
    loss.backward()
    assert loss.isfinite()
    assert z.grad is not None
    assert z.grad.isfinite().all()


def test_no_step_of_the_backward_pass_makes_a_nan() -> None:
    z, samples, views = batch(5)
    ids = torch.tensor([0, 0, 1, 2, 3]).repeat(2)  # three classes have no other sample
    with torch.autograd.set_detect_anomaly(True):
        contrastive_loss(z.requires_grad_(), ids, temperature=0.07, views=views, samples=samples).backward()
