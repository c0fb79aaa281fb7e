"""DebiasPL: the whole objective against plain loops over several steps, what the teacher does, and its settings."""

from itertools import permutations
from math import log

import numpy as np
import pytest
import torch

from newkind.errors import ConfigError
from newkind.methods.debiaspl import DebiasPL, DebiasPLConfig
from newkind.methods.gcd import GCD, GCDConfig
from newkind.training.network import Network
from small_training import DIM, K, batch_of, features_of, small_method, softmax

LABELS = [0, -1, 2, -1, -1, 0]
FREE = [1, 3, 4]


def plain_classification(
    cosines: np.ndarray, told: np.ndarray, n_views: int, before: np.ndarray, *, momentum: float = 0.999
) -> tuple[float, float, np.ndarray]:
    """(cross-entropy, pseudo-label loss, q after it), by loops."""
    z, t = (10 * cosines).reshape(n_views, 6, -1), (10 * told).reshape(n_views, 6, -1)
    supervised = [-log(softmax(z[v, i])[LABELS[i]]) for v in range(n_views) for i in range(6) if LABELS[i] >= 0]
    after = momentum * before + (1 - momentum) * np.mean(softmax(t[:, FREE]).reshape(-1, z.shape[2]), axis=0)
    costs = []
    for teacher, student in permutations(range(n_views), 2):
        for i in FREE:
            debiased = softmax(t[teacher, i] - 0.4 * np.log(before))
            learned = softmax(z[student, i] + 0.4 * np.log(after))
            costs.append(-log(learned[debiased.argmax()]) if debiased.max() >= 0.7 else 0.0)
    assert 0 in costs
    assert max(costs) > 0  # some are sure and some are not
    return float(np.mean(supervised)), float(np.mean(costs)), after


@pytest.mark.parametrize("n_views", [2, 3])
def test_objective_over_steps(n_views: int) -> None:
    method = small_method("debiaspl", pseudo_label_weight=3.0, mean_momentum=0.6, threshold=0.7).double()
    as_gcd = GCD(DIM, K, GCDConfig(projector_hidden=32, projector_out=8, projector_width=0)).double()
    as_gcd.projector.load_state_dict(method.projector.state_dict())
    q = np.full(K, 1 / K)
    for step in range(3):
        features = features_of(n_views * 6, seed=step)
        told = 0.5 * torch.randn(n_views * 6, K, dtype=torch.float64, generator=torch.Generator().manual_seed(step))
        batch = batch_of(LABELS, n_views=n_views, teacher_logits=told)
        total = method.loss_terms(features, batch).total()
        cosines = method.logits(features).detach().numpy()
        supervised, pseudo, q = plain_classification(cosines, told.numpy(), n_views, q, momentum=0.6)
        representation = as_gcd.loss_terms(features, batch).total().item()
        assert total.item() == pytest.approx(representation + supervised + 3 * pseudo, rel=1e-6)
        np.testing.assert_allclose(method.mean_prediction.numpy(), q, rtol=1e-6)


def test_without_a_teacher_the_network_labels_for_itself() -> None:
    method = small_method("debiaspl", teacher_decay=None, threshold=0.7).double()
    assert method.teacher_decay is None
    assert Network(None, method).teacher is None
    prototypes = torch.eye(K, DIM, dtype=torch.float64)
    method.classifier.prototypes.data.copy_(prototypes)
    features = features_of(12)
    features[1] = prototypes[4]  # one that it is sure of
    features[3] = prototypes[0] + prototypes[5]  # one that it is not
    parts = method.loss_terms(features, batch_of(LABELS)).parts
    cosines = method.logits(features).detach().numpy()
    _, pseudo, _ = plain_classification(cosines, cosines, 2, np.full(K, 1 / K))
    assert parts["pseudo_label"].item() == pytest.approx(pseudo, rel=1e-6)


def test_no_unlabelled_sample_changes_nothing_of_the_mean() -> None:
    method = small_method("debiaspl")
    method.loss_terms(
        features_of(12, dtype=torch.float32), batch_of([0, 1, 2, 0, 1, 2], teacher_logits=torch.rand(12, K))
    )
    torch.testing.assert_close(method.mean_prediction, torch.full((K,), 1 / K))


def test_a_merged_mean_is_a_sum() -> None:
    method = small_method("debiaspl")
    method.mean_prediction.copy_(torch.tensor([0.4, 0.2, 0.1, 0.1, 0.1, 0.1]))
    method.merge_categories([[0], [1, 2], [4, 5]], [1] * 6)
    torch.testing.assert_close(method.mean_prediction, torch.tensor([4.0, 3.0, 2.0]) / 9)
    assert "mean_prediction" in method.state_dict()


@pytest.mark.parametrize(
    "bad",
    [
        {"temperature": 0.0},
        {"teacher_decay": 1.0},
        {"mean_momentum": -0.1},
        {"threshold": 1.5},
        {"debias_strength": -1.0},
        {"pseudo_label_weight": -1.0},
        {"supervised_weight": 2.0},
    ],
)
def test_bad_settings(bad: dict) -> None:
    with pytest.raises(ConfigError):
        DebiasPLConfig(**bad)


def test_the_published_settings() -> None:
    method = DebiasPL(DIM, 5, DebiasPLConfig(projector_hidden=8))
    assert (method.teacher_decay, method.teacher_ramp) == (0.999, True)
    assert (method.config.threshold, method.config.pseudo_label_weight, method.config.mean_momentum) == (0.8, 10, 0.999)
    assert method.optimizer.learning_rate * method.optimizer.batch_size / 128 == pytest.approx(0.003)
