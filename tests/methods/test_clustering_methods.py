"""GCD and k-means: centres, names for clusters, probabilities, and GCD's objective."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from torch.nn import functional as F

from error_codes import raises
from newkind.errors import ConfigError
from newkind.losses.contrastive import contrastive_loss
from newkind.methods.centres import Centres, ClusteringConfig, fit_temperature
from newkind.methods.gcd import GCD, GCDConfig
from newkind.methods.kmeans import KMeans
from newkind.methods.method import Batch
from small_training import Images


def blobs(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Five directions in 8-d; the classes 0, 1, 2 are known, and a third of their samples labelled."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(5), 30)
    x = 4 * np.eye(5, 8)[truth] + 0.4 * rng.normal(size=(150, 8))
    labels = np.where((truth < 3) & (np.arange(150) % 3 == 0), truth, -1)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(labels), torch.tensor(truth)


@pytest.mark.parametrize("kind", [KMeans, GCD])
def test_clusters_are_found_and_known_classes_keep_their_numbers(kind: type) -> None:
    x, labels, truth = blobs()
    config = (GCDConfig if kind is GCD else ClusteringConfig)(n_init=3)
    method = kind(8, 5, config)
    method.settle(Images(x, labels, 3))
    found = method.logits(x).argmax(dim=1)
    assert (found[truth < 3] == truth[truth < 3]).all()
    assert len(found[truth >= 3].unique()) == 2
    assert (found[truth >= 3] >= 3).all()


def test_logits_are_minus_squared_distances_up_to_a_constant() -> None:
    centres = Centres(8, 5)
    centres.centers.copy_(torch.randn(5, 8))
    x = torch.randn(12, 8)
    unit = x / x.norm(dim=1, keepdim=True)
    distances = torch.stack([((unit - c) ** 2).sum(dim=1) for c in centres.centers], dim=1)
    gap = centres(x) + distances
    torch.testing.assert_close(gap, torch.ones_like(gap))


def test_the_temperature_is_the_most_likely_one() -> None:
    torch.manual_seed(0)
    logits, labels = torch.randn(200, 4), torch.randint(0, 4, (200,))
    logits[torch.arange(200), labels] += 1.5
    logits *= 0.1

    def nll(t: float) -> float:
        p = np.exp(logits.numpy().astype(float) / t)
        return float(-np.log(p[np.arange(200), labels] / p.sum(axis=1)).mean())

    best = minimize_scalar(nll, bounds=(1e-3, 1), method="bounded").x
    assert fit_temperature(logits, labels) == pytest.approx(best, rel=0.02)
    assert fit_temperature(logits[:0], labels[:0]) == 0.1


def test_labels_clamp_in_gcd_and_only_name_in_k_means() -> None:
    x, labels, truth = blobs()
    wrong = labels.clone()
    wrong[(truth == 0).nonzero()[0]] = 1  # a wrong label
    gcd = GCD(8, 5, GCDConfig(n_init=1))
    gcd.settle(Images(x, wrong, 3))
    kmeans, untouched = (KMeans(8, 5, ClusteringConfig(n_init=1)) for _ in range(2))
    kmeans.settle(Images(x, wrong, 3))
    untouched.settle(Images(x, labels, 3))
    torch.testing.assert_close(kmeans.centres.centers, untouched.centres.centers)
    right = GCD(8, 5, GCDConfig(n_init=1))
    right.settle(Images(x, labels, 3))
    assert not torch.allclose(gcd.centres.centers[1], right.centres.centers[1])


def test_gcd_objective() -> None:
    torch.manual_seed(0)
    method = GCD(8, 4, GCDConfig(projector_hidden=16, projector_out=6))
    features, labels = torch.randn(12, 8), torch.tensor([0, 0, 1, -1, -1, 1])
    total = method.loss_terms(features, Batch(labels=labels, n_views=2, epoch=0, n_epochs=1)).total()
    z, twice = method.projector(features), labels.repeat(2)
    everyone = contrastive_loss(z, torch.arange(6).repeat(2), temperature=1.0)
    labelled = contrastive_loss(z[twice >= 0], twice[twice >= 0], temperature=0.07)
    torch.testing.assert_close(total, 0.65 * everyone + 0.35 * labelled)


def test_k_means_has_nothing_to_train() -> None:
    method = KMeans(4, 3, ClusteringConfig())
    assert not method.trains
    assert not list(method.parameters())
    with raises(ConfigError, "nothing-to-train"):
        method.loss_terms(F.normalize(torch.randn(4, 4)), Batch(labels=torch.zeros(2), n_views=2, epoch=0, n_epochs=1))


@pytest.mark.parametrize("bad", [{"n_init": 0}, {"max_iter": 0}])
def test_bad_config(bad: dict[str, int]) -> None:
    with raises(ConfigError, "out-of-range"):
        ClusteringConfig(**bad)
