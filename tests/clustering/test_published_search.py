"""The published search for the number of categories."""

import numpy as np
import pytest
from labelled_mixture import mixture
from scipy.optimize import linear_sum_assignment
from torch.nn import functional as F

from error_codes import raises
from newkind.clustering import estimate_by_search, k_means
from newkind.errors import ConfigError


def test_it_finds_the_best_labelled_accuracy() -> None:
    x, labels = mixture(9, 5, spread=0.2)
    found = estimate_by_search(x, labels, n_known=5, max_categories=60, n_init=3)
    assert found.way == "search"
    assert found.quality == max(score for _, score in found.curve)
    assert dict(found.curve)[found.n_categories] == found.quality
    assert found.low == found.n_categories == found.high
    assert 5 <= found.n_categories <= 12


def test_the_score_is_the_matched_accuracy_of_labelled_samples() -> None:
    x, labels = mixture(6, 3, spread=0.8)
    found = estimate_by_search(x, labels, n_known=3, max_categories=12, n_init=2)
    k, score = found.curve[0]
    cluster = k_means(F.normalize(x, dim=1), k, n_init=2, seed=0).labels.numpy()
    given = labels >= 0
    counts = np.array([[((labels == c) & (cluster == j)).sum() for j in range(k)] for c in range(3)])
    best = counts[linear_sum_assignment(-counts)].sum()
    assert score == pytest.approx(best / given.sum(), abs=1e-4)


def test_it_needs_room() -> None:
    x, labels = mixture(6, 5)
    with raises(ConfigError, "search-range") as caught:
        estimate_by_search(x, labels, n_known=5, max_categories=5)
    assert caught.value.facts == {"n_known": 5, "most": 5}
