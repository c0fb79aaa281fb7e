"""The published search for the number of categories."""

import numpy as np
import pytest
from labelled_mixture import mixture
from scipy.optimize import linear_sum_assignment
from torch.nn import functional as F

from error_codes import raises
from newkind.clustering import estimate_by_search, k_means
from newkind.clustering.published_search import SEARCHES
from newkind.errors import ConfigError


def test_it_finds_the_best_labelled_accuracy() -> None:
    x, labels = mixture(9, 5, spread=0.2)
    found = estimate_by_search(x, labels, n_known=5, max_categories=60, n_init=3)
    assert found.way == "search"
    assert found.quality == max(score for _, score in found.curve)
    assert dict(found.curve)[found.n_categories] == found.quality
    assert found.low == found.n_categories == found.high
    assert 5 <= found.n_categories <= 12


def plain_binary(score: dict[int, float], low: int, high: int) -> int:
    """Halve towards the better end, int(log2) times; then the best of the two ends and the middle."""
    for _ in range(int(np.log2(high - low))):
        middle = int(low + (high - low) / 2)
        if score[high] > score[low]:
            low = middle
        else:
            high = middle
    three = [low, int(low + (high - low) / 2), high]
    return three[int(np.argmax([score[k] for k in three]))]


@pytest.mark.parametrize("peak", [7, 12, 25, 39])
def test_binary_search(peak: int) -> None:
    score = {k: 1 - abs(k - peak) / 100 for k in range(5, 61)}
    visited: list[int] = []
    found = SEARCHES["binary"](lambda k: visited.append(k) or score[k], (5, 60))
    assert found == plain_binary(score, 5, 60)
    assert len(set(visited)) <= 3 + 5


def test_brent_truncates() -> None:
    visited: list[float] = []
    found = SEARCHES["brent"](lambda k: visited.append(k) or -abs(k - 20.6), (5, 60))
    assert found in (20, 21)
    assert all(isinstance(k, int) for k in visited)
    # The first point of Brent's search is 5 + 0.381966 * 55 = 26.008.
    assert visited[0] == 26


def test_both_searches_on_features() -> None:
    x, labels = mixture(9, 5, spread=0.2)
    found = estimate_by_search(x, labels, n_known=5, max_categories=40, n_init=2, search="binary")
    assert dict(found.curve)[found.n_categories] == found.quality
    assert {5, 22, 40} <= {k for k, _ in found.curve}
    with raises(ConfigError, "unknown-choice"):
        estimate_by_search(x, labels, n_known=5, search="luck")


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
