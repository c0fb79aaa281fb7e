"""ORCA: the whole objective against plain loops, how the margin follows the uncertainty, and its settings."""

from itertools import permutations
from math import log

import numpy as np
import pytest
import torch

from newkind.errors import ConfigError
from newkind.losses import random_partners
from newkind.methods.orca import ORCAConfig
from newkind.training.network import Network
from small_training import batch_of, blobs, features_of, small_method, softmax, train_small

LABELS = [0, -1, 2, -1, -1, 0]


def plain_objective(x: np.ndarray, cosines: np.ndarray, n_views: int, margin: float, drawn: dict[int, int]) -> float:
    """10 * cosine, loops over views and samples. drawn: the partner of each labelled sample."""
    b, k = len(LABELS), cosines.shape[1]
    x, z = x.reshape(n_views, b, -1), (10 * cosines).reshape(n_views, b, k)
    p = softmax(z)
    supervised = []
    for v in range(n_views):
        for i, label in enumerate(LABELS):
            if label >= 0:
                supervised.append(-log(softmax(z[v, i] + 10 * margin * np.eye(k)[label])[label]))
    pairs = []
    for v, w in permutations(range(n_views), 2):
        unit = x[v] / np.linalg.norm(x[v], axis=1, keepdims=True)
        for i in range(b):
            others = [j for j in range(b) if j != i]
            partner = drawn[i] if LABELS[i] >= 0 else max(others, key=lambda j, i=i, unit=unit: unit[i] @ unit[j])
            pairs.append(-log(p[v, i] @ p[w, partner]))
    mean = p.reshape(-1, k).mean(axis=0)
    return np.mean(supervised) + np.mean(pairs) + log(k) + (mean * np.log(mean)).sum()


@pytest.mark.parametrize("n_views", [2, 3])
@pytest.mark.parametrize(("uncertainty", "margin"), [(0.9, 0.5), (0.2, 0.2), (0.0, 0.0)])
def test_objective(n_views: int, uncertainty: float, margin: float) -> None:
    method = small_method("orca").double()
    method.uncertainty.fill_(uncertainty)
    features = features_of(n_views * 6)
    total = method.loss_terms(features, batch_of(LABELS, n_views=n_views, seed=3)).total()
    cosines = method.logits(features).detach().numpy()
    # 0 and 5 are of one class, so each is the other's partner; 2 is alone and its own.
    expected = plain_objective(features.numpy(), cosines, n_views, margin, {0: 5, 5: 0, 2: 2})
    assert total.item() == pytest.approx(expected, rel=1e-9)


def test_the_partner_is_drawn_from_the_batch_s_generator() -> None:
    method, features = small_method("orca").double(), features_of(16)
    found = [method.loss_terms(features, batch_of([0] * 8, seed=seed)).parts["pairs"].item() for seed in (1, 1, 2)]
    assert found[0] == found[1] != found[2]
    drawn = random_partners(torch.zeros(8), torch.Generator().manual_seed(1))
    p = (method.logits(features) * 10).softmax(dim=1).detach()
    expected = [-log(p[8 * v + i] @ p[8 * (1 - v) + drawn[i]]) for v in range(2) for i in range(8)]
    assert found[0] == pytest.approx(np.mean(expected), rel=1e-9)


def test_the_margin_follows_the_uncertainty_of_the_last_epoch() -> None:
    method = small_method("orca")
    confidences = []
    for epoch in range(3):
        method.begin_epoch(epoch)
        expected = 1 - np.mean(confidences) if confidences else 1.0  # the first epoch has no last one
        assert method.uncertainty.item() == pytest.approx(expected, rel=1e-5)
        confidences = []
        for step in range(2):
            features = features_of(12, seed=10 * epoch + step, dtype=torch.float32)
            method.loss_terms(features, batch_of(LABELS))
            p = softmax(10 * method.logits(features).detach().numpy()).reshape(2, 6, -1)
            confidences += [p[v, i].max() for v in range(2) for i in range(6) if LABELS[i] < 0]
    method.begin_epoch(3)
    before = method.uncertainty.item()
    method.loss_terms(features, batch_of([0, 1, 2, 0, 1, 2]))  # no unlabelled sample: nothing to learn of it
    method.begin_epoch(4)
    assert method.uncertainty.item() == before


def test_a_training_grows_surer_and_remembers_it(tmp_path) -> None:
    network = Network(None, small_method("orca"))
    train_small(tmp_path, network, 8)
    total, count = network.method.confidence.tolist()
    assert count > 0
    assert 0 < network.method.uncertainty.item() < 0.5
    assert 1 - total / count < network.method.uncertainty.item() + 0.05
    assert len(blobs()[0]) > count / 2 / 2  # two views of about half of what the last epoch drew


def test_prototypes_start_with_length_1() -> None:
    lengths = [small_method("orca", unit_prototypes=unit).classifier.prototypes.norm(dim=1) for unit in (True, False)]
    torch.testing.assert_close(lengths[0], torch.ones(len(lengths[0])))
    assert lengths[1].max() < 0.9


@pytest.mark.parametrize(
    "bad", [{"temperature": 0.0}, {"max_margin": -0.1}, {"pair_weight": -1.0}, {"entropy_weight": float("nan")}]
)
def test_bad_settings(bad: dict) -> None:
    with pytest.raises(ConfigError):
        ORCAConfig(**bad)
