"""RS+: the whole objective against loops over pairs, and its settings."""

from itertools import combinations, permutations
from math import exp, log

import numpy as np
import pytest
import torch

from error_codes import raises
from newkind.errors import ConfigError
from newkind.methods.rankstats import RankStats, RankStatsConfig
from small_training import DIM, batch_of, features_of, small_method, softmax

LABELS = [0, -1, 2, -1, -1, 0]


def plain_objective(
    x: np.ndarray, logits: np.ndarray, n_views: int, top_k: int, weight: float, *, over: str = "unlabelled"
) -> float:
    """Loops over samples, pairs and views, in float64, of features x after the ReLU and logits over the temperature."""
    b = len(LABELS)
    x, p = x.reshape(n_views, b, -1), softmax(logits).reshape(n_views, b, -1)
    supervised = np.mean([-log(p[v, i, LABELS[i]]) for v in range(n_views) for i in range(b) if LABELS[i] >= 0])
    free = [i for i in range(b) if LABELS[i] < 0 or over == "all"]
    pairs = []
    for v, w in permutations(range(n_views), 2):
        for i in free:
            for j in free:
                same = set(np.argsort(x[v, i])[-top_k:]) == set(np.argsort(x[v, j])[-top_k:])
                likely = p[v, i] @ p[w, j]
                pairs.append(-log((likely if same else 1 - likely) + 1e-7))
    consistency = np.mean([(p[v] - p[w]) ** 2 for v, w in combinations(range(n_views), 2)])
    return supervised + np.mean(pairs) + weight * consistency


@pytest.mark.parametrize("n_views", [2, 3])
@pytest.mark.parametrize("over", ["unlabelled", "all"])
@pytest.mark.parametrize("head", ["linear", "cosine"])
def test_objective(n_views: int, over: str, head: str) -> None:
    t = 1.0 if head == "linear" else 0.1
    settings = {"top_k": 2, "head": head, "temperature": t, "pairs_over": over, "pair_weight": 1.0}
    method = small_method("rankstats", **settings).double()
    features = features_of(n_views * 6)
    features[1, :2] += 9  # two samples of the first view that are taken for one class
    features[3, :2] += 7
    total = method.loss_terms(features, batch_of(LABELS, n_views=n_views, epoch=12, n_epochs=200)).total()
    weight = 5 * exp(-5 * (1 - 12 / 50) ** 2)
    x = np.maximum(features.numpy(), 0)
    rows = method.classifier.prototypes.detach().numpy()
    if head == "linear":
        logits = x @ rows.T + method.classifier.biases.detach().numpy()
    else:
        logits = x @ rows.T / np.linalg.norm(x, axis=1)[:, None] / np.linalg.norm(rows, axis=1)
    expected = plain_objective(x, logits / t, n_views, 2, weight, over=over)
    assert total.item() == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(method.logits(features).detach().numpy(), logits, rtol=1e-9, atol=1e-12)


def test_a_shorter_training_ramps_up_over_all_of_it() -> None:
    method = small_method("rankstats")
    terms = [
        method.loss_terms(features_of(12, dtype=torch.float32), batch_of(LABELS, epoch=epoch, n_epochs=20))
        for epoch in (0, 10, 19)
    ]
    expected = [5 * exp(-5), 5 * exp(-1.25), 5 * exp(-5 / 400)]
    assert [term.weights["consistency"] for term in terms] == pytest.approx(expected)


def test_ranks_by_value_or_by_magnitude() -> None:
    features = features_of(12)
    features[1, 0], features[3, 0] = -50, -60  # only by magnitude do they stand out in the same way
    by_value, by_magnitude = (
        small_method("rankstats", top_k=1, rank_by=by, relu=False)
        .double()
        .loss_terms(features, batch_of(LABELS))
        .parts["pairs"]
        for by in ("value", "magnitude")
    )
    assert by_value.item() != by_magnitude.item()


@pytest.mark.parametrize(
    "bad",
    [
        {"temperature": 0.0},
        {"temperature": float("nan")},
        {"top_k": 0},
        {"rank_by": "luck"},
        {"head": "round"},
        {"pairs_over": "some"},
        {"pair_weight": -1.0},
        {"consistency_weight": -1.0},
        {"ramp_up_epochs": -1},
    ],
)
def test_bad_settings(bad: dict) -> None:
    with pytest.raises(ConfigError):
        RankStatsConfig(**bad)


def test_more_ranks_than_dimensions() -> None:
    with raises(ConfigError, "out-of-range"):
        RankStats(DIM, 5, RankStatsConfig(top_k=17))
