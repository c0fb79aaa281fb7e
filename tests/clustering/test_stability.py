"""Agreement of mixtures, and the number of new classes that it chooses."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from newkind.clustering.class_sized_clusters import whiten
from newkind.clustering.known_sizes import KnownSizes
from newkind.clustering.stability import WEIGHT, WIDER, choose_stable, mixture_agreement


def clusters(n_classes: int, n_known: int, *, per_class: int = 40) -> tuple[torch.Tensor, np.ndarray, KnownSizes]:
    """Whitened features of round classes of one size, half of the samples of the known ones labelled."""
    rng = np.random.default_rng(3)
    truth = np.repeat(np.arange(n_classes), per_class)
    x = torch.from_numpy(rng.normal(size=(n_classes, 12))[truth] + 0.4 * rng.normal(size=(len(truth), 12))).float()
    labels = np.where((truth < n_known) & (np.arange(len(truth)) % 2 == 0), truth, -1)
    given = labels >= 0
    z = whiten(x, x.mean(dim=0), x[torch.from_numpy(given)], labels[given], shrinkage=0.3)
    half = np.full(n_known, per_class / 2)
    return z, labels, KnownSizes(half, half, 0.5, 0.5, 0.1)


def test_mixtures_agree_at_the_right_number_and_not_beyond() -> None:
    z, labels, sizes = clusters(8, 4)
    found = {k: mixture_agreement(z, labels, sizes, k) for k in (8, 10, 12)}
    assert found[8] > 0.95
    assert found[8] > found[10] + 0.03
    assert found[8] > found[12] + 0.03


def test_without_structure_mixtures_do_not_agree() -> None:
    rng = np.random.default_rng(0)
    z = torch.nn.functional.normalize(torch.from_numpy(rng.normal(size=(300, 40))).float(), dim=1)
    labels = np.where(np.arange(300) < 40, np.arange(300) % 4, -1)
    sizes = KnownSizes(np.full(4, 10.0), np.full(4, 20.0), 0.5, 0.5, 0.1)
    assert mixture_agreement(z, labels, sizes, 12) < 0.6


def test_equal_agreement_leaves_the_first_estimate() -> None:
    found = choose_stable(np.log(10), 0.05, lambda n: 0.9, most=100)
    assert found.middle == 10  # the factor n moves the maximum by (WIDER deviation)^2 of itself only


def test_the_weights_are_those_of_the_formula() -> None:
    log_n, deviation = np.log(5), 0.2
    agreement = {3: 0.97, 4: 0.95, 5: 0.90, 6: 0.85, 7: 0.80, 8: 0.80}
    found = choose_stable(log_n, deviation, agreement.__getitem__, most=100)
    weights = {
        n: n * np.exp(-(((np.log(n) - log_n) / (WIDER * deviation)) ** 2) / 2 + WEIGHT * a)
        for n, a in agreement.items()
    }
    assert found.middle == max(weights, key=weights.__getitem__)
    total, below, bounds = sum(weights.values()), 0.0, []
    for n, weight in weights.items():
        below += weight / total
        bounds.append((n, below))
    assert found.low == next(n for n, share in bounds if share >= 0.05)
    assert found.high == next(n for n, share in bounds if share >= 0.95)


@given(log_n=st.floats(-1, 4), deviation=st.floats(0.05, 2), seed=st.integers(0, 1000), most=st.integers(1, 60))
def test_the_interval_contains_the_number(log_n: float, deviation: float, seed: int, most: int) -> None:
    rng = np.random.default_rng(seed)
    found = choose_stable(log_n, deviation, lambda n: float(rng.random()), most=most)
    assert 1 <= found.low <= found.high <= most
    assert 1 <= found.middle <= most


@pytest.mark.parametrize("agreement", [0.0, 1.0])
def test_only_numbers_that_are_possible_are_tried(agreement: float) -> None:
    tried: list[int] = []

    def record(n: int) -> float:
        tried.append(n)
        return agreement

    choose_stable(np.log(0.6), 0.8, record, most=4)
    assert min(tried) >= 1
    assert max(tried) <= 4
