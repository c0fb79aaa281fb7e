"""UNO+: the whole objective against plain loops, which head is read out, and its settings."""

from itertools import permutations

import numpy as np
import pytest
import torch

from newkind.errors import ConfigError
from newkind.losses import self_label_loss
from newkind.methods.uno import UNO, UNOConfig
from small_training import K, batch_of, features_of, small_method, softmax

LABELS = [0, -1, 2, -1, -1, 0]
FREE = [1, 3, 4]


def plain_head(logits: np.ndarray, n_views: int, over: list[int]) -> float:
    """One head: Sinkhorn over the rows `over` of each view by plain scaling, then loops."""
    n_classes = logits.shape[1]
    views = logits.reshape(n_views, len(LABELS), n_classes)
    targets = np.zeros_like(views)
    for v in range(n_views):
        q = np.exp(views[v][over] / 0.05)
        for _ in range(3):
            q = q / q.sum(axis=0) / n_classes
            q = q / q.sum(axis=1, keepdims=True) / len(over)
        targets[v, over] = q * len(over)
        for i, label in enumerate(LABELS):
            if label >= 0:
                targets[v, i] = np.eye(n_classes)[label]
    log_p = np.log(softmax(views / 0.1))
    return float(
        np.mean(
            [-(targets[v, i] @ log_p[w, i]) for v, w in permutations(range(n_views), 2) for i in range(len(LABELS))]
        )
    )


@pytest.mark.parametrize("n_views", [2, 3])
@pytest.mark.parametrize("over", ["unlabelled", "all"])
def test_objective(n_views: int, over: str) -> None:
    method = small_method("uno", n_heads=3, overcluster_factor=2, sinkhorn_over=over).double()
    features = features_of(n_views * 6)
    total = method.loss_terms(features, batch_of(LABELS, n_views=n_views)).total()
    rows = FREE if over == "unlabelled" else list(range(6))
    own = [plain_head(head(features).detach().numpy(), n_views, rows) for head in method.heads]
    more = [plain_head(head(features).detach().numpy(), n_views, rows) for head in method.over_heads]
    assert [len(head.prototypes) for head in (*method.heads, *method.over_heads)] == [K] * 3 + [2 * K] * 3
    assert total.item() == pytest.approx(np.mean(own) + np.mean(more), rel=1e-5)
    np.testing.assert_allclose(method.head_losses, own, rtol=1e-5)


def test_one_head_over_all_samples_is_the_self_label_loss() -> None:
    method = small_method("uno", n_heads=1, overcluster_factor=0, sinkhorn_over="all").double()
    features = features_of(12)
    terms = method.loss_terms(features, batch_of(LABELS))
    assert list(terms.parts) == ["swapped"]
    expected = self_label_loss(method.logits(features), 2, student_temperature=0.1, labels=torch.tensor(LABELS))
    torch.testing.assert_close(terms.total(), expected, rtol=1e-6, atol=1e-6)


def test_the_head_with_the_lowest_loss_over_the_epoch_is_read_out() -> None:
    method = small_method("uno")
    features, sums = features_of(12, dtype=torch.float32), np.zeros(4)
    method.begin_epoch(0)
    for seed in range(3):
        x = features_of(12, seed=seed, dtype=torch.float32)
        method.loss_terms(x, batch_of(LABELS))
        sums += [plain_head(head(x).detach().double().numpy(), 2, FREE) for head in method.heads]
    np.testing.assert_allclose(method.head_losses, sums, rtol=1e-4)
    best = int(sums.argmin())
    assert best != 0  # otherwise this would not show anything
    torch.testing.assert_close(method.logits(features), method.heads[best](features))
    assert not torch.equal(method.logits(features), method.heads[0](features))
    method.begin_epoch(1)
    assert method.head_losses.tolist() == [0] * 4


@pytest.mark.parametrize(
    "bad",
    [
        {"temperature": 0.0},
        {"sinkhorn_temperature": -0.1},
        {"sinkhorn_iterations": 0},
        {"sinkhorn_over": "some"},
        {"n_heads": 0},
        {"overcluster_factor": -1},
    ],
)
def test_bad_settings(bad: dict) -> None:
    with pytest.raises(ConfigError):
        UNOConfig(**bad)


def test_as_many_categories_as_known_classes() -> None:
    method = UNO(16, 3, UNOConfig())
    assert method.logits(torch.ones(2, 16)).shape == (2, 3)
