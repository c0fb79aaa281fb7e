"""The mixture with target sizes against a plain computation, one sample at a time."""

import labelled_mixture
import numpy as np
import pytest
import torch
from torch.nn import functional as F

from error_codes import raises
from newkind.clustering import KnownSizes, TargetSizes, fit_mixture, membership, refine_mixture, target_sizes
from newkind.clustering.known_sizes import class_means
from newkind.errors import ConfigError


def clouds(sizes: list[int], *, dim: int = 8, spread: float = 0.25, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Unit vectors around random directions, and the number of each one's direction."""
    generator = torch.Generator().manual_seed(seed)
    centers = F.normalize(torch.randn(len(sizes), dim, generator=generator), dim=1)
    truth = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    noise = spread * torch.randn(len(truth), dim, generator=generator)
    return F.normalize(centers[truth] + noise, dim=1), truth


def plain(z, c, labels, *, temperature, target, balance, n_iter):
    """The formulas of the module's docstring in NumPy, one sample at a time."""
    z, c, labels = z.double().numpy(), c.double().numpy(), labels.numpy()
    target, balance = target.double().numpy(), balance.double().numpy()
    c = c / np.linalg.norm(c, axis=1, keepdims=True)
    k, b = len(c), np.zeros(len(c))
    for _ in range(n_iter):
        sums, size = np.zeros_like(c), np.zeros(k)
        for x, y in zip(z, labels, strict=True):
            if y >= 0:
                q = np.eye(k)[y]
            else:
                e = np.exp(c @ x / temperature + b)
                q = e / e.sum()
            sums += q[:, None] * x
            size += q
        c = sums / np.linalg.norm(sums, axis=1, keepdims=True)
        aim = -balance * np.log(np.maximum(size / target, 1e-3))
        b = b + (aim - b) / (1 + balance.max())
    return c, b


def sizes_of(target: list[float], balance: list[float], expected: list[float] | None = None) -> TargetSizes:
    return TargetSizes(torch.tensor(target), torch.tensor(balance), np.array(expected or []))


@pytest.mark.parametrize("balance", [[0.0] * 4, [1.0] * 4, [8.0, 8.0, 0.5, 0.5]])
def test_steps_are_those_of_the_formula(balance):
    z, truth = clouds([20, 12, 7, 9])
    labels = torch.where((truth < 2) & (torch.arange(len(truth)) % 2 == 0), truth, -1)
    start = torch.randn(4, 8, generator=torch.Generator().manual_seed(1))
    sizes = sizes_of([20.0, 12.0, 8.0, 8.0], balance)
    found = refine_mixture(z, start, labels=labels, sizes=sizes, temperature=0.1, n_iter=7)
    directions, offsets = plain(z, start, labels, temperature=0.1, target=sizes.target, balance=sizes.balance, n_iter=7)
    np.testing.assert_allclose(found.directions.numpy(), directions, atol=2e-5)
    np.testing.assert_allclose(found.offsets.numpy(), offsets, atol=5e-4)
    logits = z.double().numpy() @ directions.T / 0.1 + offsets
    own = [row[y] if y >= 0 else np.log(np.exp(row).sum()) for row, y in zip(logits, labels.tolist(), strict=True)]
    assert found.fit == pytest.approx(np.mean(own), abs=1e-3)


def test_pieces_make_no_difference(monkeypatch):
    z, truth = clouds([15, 15, 15])
    labels = torch.where((truth == 0) & (torch.arange(45) < 5), 0, -1)
    settings = {"labels": labels, "sizes": sizes_of([15.0] * 3, [4.0] * 3), "temperature": 0.1, "n_iter": 10}
    whole = refine_mixture(z, z[:3], **settings)
    monkeypatch.setattr(membership, "CHUNK", 12)  # four rows at a time
    pieces = refine_mixture(z, z[:3], **settings)
    torch.testing.assert_close(whole.directions, pieces.directions, atol=1e-5, rtol=0)
    assert whole.fit == pytest.approx(pieces.fit, abs=1e-5)


def test_a_strong_balance_keeps_categories_at_their_targets():
    z, _ = clouds([60, 20, 20], spread=0.5)
    nothing = torch.full((100,), -1)

    def members(balance: float, target: list[float]) -> torch.Tensor:
        sizes = sizes_of(target, [balance] * 3)
        found = refine_mixture(z, z[[0, 65, 85]], labels=nothing, sizes=sizes, temperature=0.2, n_iter=200)
        return (z @ found.directions.T / 0.2 + found.offsets).softmax(dim=1).sum(dim=0)

    torch.testing.assert_close(members(1000.0, [100 / 3] * 3), torch.full((3,), 100 / 3), atol=1.0, rtol=0)
    torch.testing.assert_close(members(1000.0, [50.0, 30.0, 20.0]), torch.tensor([50.0, 30, 20]), atol=1.0, rtol=0)
    assert members(50.0, [100 / 3] * 3).std() < members(0.0, [100 / 3] * 3).std()


def test_large_known_classes_are_not_split_and_small_new_ones_are_found():
    z, truth = clouds([150, 30, 60, 12, 12], dim=16, spread=0.12)
    labels = torch.where((truth < 2) & (torch.arange(264) % 2 == 0), truth, -1)
    known = KnownSizes(np.array([75.0, 15.0]), np.array([75.0, 15.0]), 0.8, 0.5, 0.1)
    found = fit_mixture(z, labels=labels, sizes=target_sizes(known, 5, int((labels < 0).sum())), seed=3)
    best = (z @ found.directions.T).argmax(dim=1)
    for c in (0, 1):
        assert (best[truth == c] == c).float().mean() > 0.95  # a known class keeps its images and its place
    assert len({(int(t), int(b)) for t, b in zip(truth, best, strict=True) if t >= 2}) == 3


def test_the_same_seed_gives_the_same_and_restarts_only_help():
    z, _ = clouds([12] * 10, spread=0.3)
    nobody = KnownSizes(np.zeros(0), np.zeros(0), 0.5, 0.0, 0.0)
    settings = {"labels": torch.full((120,), -1), "sizes": target_sizes(nobody, 10, 120), "n_iter": 30}
    one, again = (fit_mixture(z, n_init=1, seed=0, **settings) for _ in range(2))
    assert torch.equal(one.directions, again.directions)
    assert fit_mixture(z, n_init=6, seed=0, **settings).fit >= one.fit


def test_only_known_classes():
    z, truth = clouds([20, 20])
    labels = torch.where(torch.arange(40) % 2 == 0, truth, -1)
    known = KnownSizes(np.array([10.0, 10.0]), np.array([10.0, 10.0]), 0.1, 0.5, 0.1)
    found = fit_mixture(z, labels=labels, sizes=target_sizes(known, 2, 20))
    assert ((z @ found.directions.T).argmax(dim=1) == truth).float().mean() > 0.9


def test_more_new_categories_than_samples_that_known_classes_leave():
    z, truth = clouds([20, 20])
    labels = torch.where(torch.arange(40) % 2 == 0, truth, -1)
    known = KnownSizes(np.array([10.0, 10.0]), np.array([10.0, 10.0]), 0.1, 0.5, 0.1)
    found = fit_mixture(z, labels=labels, sizes=target_sizes(known, 5, 20))
    assert found.directions.shape == (5, 8)
    assert torch.isfinite(found.directions).all()


def test_target_sizes():
    known = KnownSizes(np.array([10.0, 4.0]), np.array([30.0, 6.0]), 1.0, 0.5, 0.1)
    found = target_sizes(known, 5, 66)
    assert found.target.tolist() == [40.0, 10.0, 10.0, 10.0, 10.0]
    torch.testing.assert_close(found.balance, torch.tensor([8.0, 8.0, 0.2, 0.2, 0.2]))
    alike = KnownSizes(known.labelled, known.unlabelled, 0.05, 0.5, 0.1)
    assert target_sizes(alike, 5, 66).balance.tolist() == [8.0] * 5  # bounded
    assert target_sizes(known, 5, 66, balance=3.0).balance.tolist() == [8.0, 8.0, 3.0, 3.0, 3.0]
    with raises(ConfigError, "fewer-categories-than-classes"):
        target_sizes(known, 1, 66)


def test_forbidden_pairs_leave_the_category_alone() -> None:
    """As if the sample were not there for that category, also when rows are read in several chunks."""
    x, labels = labelled_mixture.mixture(4, 2)
    z = F.normalize(x, dim=1)
    given = torch.from_numpy(labels)
    start = class_means(z, np.arange(len(z)) // 24, 4)
    sizes = TargetSizes(torch.full((4,), 24.0), torch.full((4,), 0.5), np.zeros(0))
    rows = np.flatnonzero((labels < 0) & (np.arange(len(z)) // 24 == 3))
    forbidden = torch.tensor([[int(i), 3] for i in rows])
    free = refine_mixture(z, start, labels=given, sizes=sizes)
    found = refine_mixture(z, start, labels=given, sizes=sizes, forbidden=forbidden)
    plain = _plain_refinement(z, start, given, sizes, forbidden)
    torch.testing.assert_close(found.directions, plain, rtol=1e-4, atol=1e-4)
    own = z[rows].mean(dim=0)
    assert float(own @ found.directions[3]) < float(own @ free.directions[3])
    nothing = refine_mixture(z, start, labels=given, sizes=sizes, forbidden=torch.zeros(0, 2, dtype=torch.int64))
    torch.testing.assert_close(nothing.directions, free.directions)


def _plain_refinement(
    z: torch.Tensor, c: torch.Tensor, labels: torch.Tensor, sizes: TargetSizes, forbidden: torch.Tensor
) -> torch.Tensor:
    """The same iteration with one dense table of memberships."""
    b = torch.zeros(len(c))
    step = 1 / (1 + float(sizes.balance.max()))
    for _ in range(60):
        logits = z @ c.T / 0.05 + b
        logits[forbidden[:, 0], forbidden[:, 1]] = -torch.inf
        q = logits.softmax(dim=1)
        q[labels >= 0] = F.one_hot(labels[labels >= 0], len(c)).float()
        c = F.normalize(q.T @ z, dim=1)
        b = b + step * (-sizes.balance * (q.sum(dim=0) / sizes.target).clamp_min(1e-3).log() - b)
    return c
