"""UNO+: the whole objective against plain loops, which head is read out, and its settings."""

from itertools import permutations

import numpy as np
import pytest
import torch

from newkind.errors import ConfigError
from newkind.losses import self_label_loss
from newkind.methods.registry import build_method
from newkind.methods.uno import UNO, UNOConfig
from small_training import DIM, Images, K, batch_of, features_of, small_method, softmax

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


def started(n_known: int = 3, **settings) -> UNO:
    method = small_method("uno", **settings).double()
    method.start(Images(torch.zeros(0, DIM), torch.zeros(0), n_known))
    return method


def plain_cosines(x: np.ndarray, rows: torch.Tensor) -> np.ndarray:
    w = rows.detach().numpy()
    return x @ w.T / np.linalg.norm(x, axis=1)[:, None] / np.linalg.norm(w, axis=1)


def plain_logits(method: UNO, head, features: torch.Tensor, n_own: int) -> np.ndarray:
    """Known classes from the shared prototypes if there are any, then `n_own` columns of a head."""
    x = z = features.numpy()
    if head.mlp is not None:
        first, _, last = head.mlp.layers
        h = torch.nn.functional.gelu(
            torch.from_numpy(x @ first.weight.detach().numpy().T + first.bias.detach().numpy())
        )
        z = h.numpy() @ last.weight.detach().numpy().T + last.bias.detach().numpy()
    own = plain_cosines(z, head.classifier.prototypes[:n_own])
    if method.shared is None:
        return own
    return np.hstack([plain_cosines(x, method.shared.prototypes[: int(method.n_known)]), own])


@pytest.mark.parametrize("n_views", [2, 3])
@pytest.mark.parametrize("over", ["unlabelled", "all"])
@pytest.mark.parametrize("known_on", ["backbone", "head"])
@pytest.mark.parametrize(
    ("head", "overcluster_of", "combine"), [("mlp", "new", "mean"), ("linear", "all", "sum"), ("mlp", "all", "mean")]
)
def test_objective(n_views: int, over: str, known_on: str, head: str, overcluster_of: str, combine: str) -> None:
    settings = {"sinkhorn_over": over, "known_on": known_on, "head": head, "overcluster_of": overcluster_of}
    method = started(n_heads=3, overcluster_factor=2, combine=combine, **settings)
    features = features_of(n_views * 6)
    total = method.loss_terms(features, batch_of(LABELS, n_views=n_views)).total()
    rows = FREE if over == "unlabelled" else list(range(6))
    n_over = 3 + 2 * (K - 3) if overcluster_of == "new" else 2 * K
    n_shared = 3 if known_on == "backbone" else 0
    own = [plain_head(plain_logits(method, h, features, K - n_shared), n_views, rows) for h in method.heads]
    more = [plain_head(plain_logits(method, h, features, n_over - n_shared), n_views, rows) for h in method.over_heads]
    both = np.mean(own) + np.mean(more)
    assert total.item() == pytest.approx(both / 2 if combine == "mean" else both, rel=1e-9)
    np.testing.assert_allclose(method.head_losses, own, rtol=1e-5)


def test_one_head_is_the_self_label_loss() -> None:
    method = started(n_heads=1, overcluster_factor=0)
    features = features_of(12)
    terms = method.loss_terms(features, batch_of(LABELS))
    assert list(terms.parts) == ["swapped"]
    expected = self_label_loss(method.logits(features), 2, student_temperature=0.1, labels=torch.tensor(LABELS))
    torch.testing.assert_close(terms.total(), expected, rtol=1e-6, atol=1e-6)


def test_the_head_with_the_lowest_loss_over_the_epoch_is_read_out() -> None:
    method, sums = started(), np.zeros(4)
    features = features_of(12)
    method.begin_epoch(0)
    for seed in range(3):
        x = features_of(12, seed=seed)
        method.loss_terms(x, batch_of(LABELS))
        sums += [plain_head(plain_logits(method, head, x, K - 3), 2, FREE) for head in method.heads]
    np.testing.assert_allclose(method.head_losses, sums, rtol=1e-5)
    best = int(sums.argmin())
    found = method.logits(features).detach().numpy()
    np.testing.assert_allclose(found, plain_logits(method, method.heads[best], features, K - 3), rtol=1e-9, atol=1e-12)
    other = plain_logits(method, method.heads[(best + 1) % 4], features, K - 3)
    assert np.abs(found - other)[:, 3:].max() > 1e-3  # only the new categories depend on the head
    np.testing.assert_allclose(found[:, :3], other[:, :3], rtol=1e-9, atol=1e-12)
    method.begin_epoch(1)
    assert method.head_losses.tolist() == [0] * 4


@pytest.mark.parametrize("known_on", ["backbone", "head"])
def test_merging_keeps_known_classes(known_on: str) -> None:
    method = started(2, known_on=known_on)
    method.head_losses.copy_(torch.tensor([3.0, 1.0, 2.0, 4.0]))
    features = features_of(40)
    before = method.logits(features).detach()
    method.merge_categories([[0], [1], [2, 4], [5]], [10, 10, 30, 0, 10, 5])
    after = method.logits(features).detach()
    torch.testing.assert_close(after[:, [0, 1, 3]], before[:, [0, 1, 5]])
    both = 3 * before[:, 2] + before[:, 4]
    assert np.corrcoef(both.numpy(), after[:, 2].numpy())[0, 1] == pytest.approx(1, abs=1e-6)
    again = build_method("uno", DIM, 4, method.config).double()
    again.load_state_dict(method.state_dict())
    torch.testing.assert_close(again.logits(features), after)
    assert method.loss_terms(features_of(12), batch_of([0, -1, 1, -1, -1, 0])).total().isfinite()


def test_merging_may_leave_no_new_category() -> None:
    method = started(2)
    method.merge_categories([[0, 2], [1, 3, 4, 5]], [10, 10, 0, 0, 0, 0])
    assert method.logits(features_of(4)).shape == (4, 2)


@pytest.mark.parametrize(
    "bad",
    [
        {"temperature": 0.0},
        {"sinkhorn_temperature": -0.1},
        {"sinkhorn_iterations": 0},
        {"sinkhorn_over": "some"},
        {"n_heads": 0},
        {"overcluster_factor": -1},
        {"head": "tree"},
        {"known_on": "moon"},
        {"combine": "product"},
    ],
)
def test_bad_settings(bad: dict) -> None:
    with pytest.raises(ConfigError):
        UNOConfig(**bad)


def test_as_many_categories_as_known_classes() -> None:
    method = started(K)
    assert method.logits(features_of(2)).shape == (2, K)
    total = method.loss_terms(features_of(12), batch_of(LABELS)).total()
    total.backward()
    assert total.isfinite()


def test_the_published_settings() -> None:
    method = UNO(DIM, 5, UNOConfig(head_hidden=8))
    assert method.optimizer.learning_rate * method.optimizer.batch_size / 128 == pytest.approx(0.4)
    torch.testing.assert_close(method.shared.prototypes.norm(dim=1), torch.ones(5))
