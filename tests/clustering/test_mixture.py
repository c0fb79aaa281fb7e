"""The balanced mixture against a plain computation, one sample at a time."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from error_codes import raises
from newkind.clustering import fit_mixture, mixture, refine_mixture
from newkind.errors import ConfigError


def clouds(sizes: list[int], *, dim: int = 8, spread: float = 0.25, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Unit vectors around random directions, and the number of each one's direction."""
    generator = torch.Generator().manual_seed(seed)
    centers = F.normalize(torch.randn(len(sizes), dim, generator=generator), dim=1)
    truth = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    noise = spread * torch.randn(len(truth), dim, generator=generator)
    return F.normalize(centers[truth] + noise, dim=1), truth


def plain(z, c, labels, *, temperature, balance, n_iter):
    """The formulas of the module's docstring in NumPy, one sample at a time."""
    z, c, labels = z.double().numpy(), c.double().numpy(), labels.numpy()
    c = c / np.linalg.norm(c, axis=1, keepdims=True)
    k, b = len(c), np.zeros(len(c))
    for _ in range(n_iter):
        sums, share = np.zeros_like(c), np.zeros(k)
        for x, y in zip(z, labels, strict=True):
            if y >= 0:
                q = np.eye(k)[y]
            else:
                e = np.exp(c @ x / temperature + b)
                q = e / e.sum()
            sums += q[:, None] * x
            share += q / len(z)
        c = sums / np.linalg.norm(sums, axis=1, keepdims=True)
        aim = -balance * np.log(np.maximum(k * share, 1e-3))
        b = b + (aim - b) / (1 + balance)
    return c, b


@pytest.mark.parametrize("balance", [0.0, 1.0, 4.0])
def test_steps_are_those_of_the_formula(balance):
    z, truth = clouds([20, 12, 7, 9])
    labels = torch.where((truth < 2) & (torch.arange(len(truth)) % 2 == 0), truth, -1)
    start = torch.randn(4, 8, generator=torch.Generator().manual_seed(1))
    found = refine_mixture(z, start, labels=labels, temperature=0.1, balance=balance, n_iter=7)
    directions, offsets = plain(z, start, labels, temperature=0.1, balance=balance, n_iter=7)
    np.testing.assert_allclose(found.directions.numpy(), directions, atol=2e-5)
    np.testing.assert_allclose(found.offsets.numpy(), offsets, atol=2e-4)
    logits = z.double().numpy() @ directions.T / 0.1
    assert found.fit == pytest.approx(np.log(np.exp(logits).sum(axis=1)).mean(), abs=1e-4)


def test_pieces_make_no_difference(monkeypatch):
    z, truth = clouds([15, 15, 15])
    labels = torch.where((truth == 0) & (torch.arange(45) < 5), 0, -1)
    settings = {"labels": labels, "temperature": 0.1, "balance": 4.0, "n_iter": 10}
    whole = refine_mixture(z, z[:3], **settings)
    monkeypatch.setattr(mixture, "CHUNK", 12)  # four rows at a time
    pieces = refine_mixture(z, z[:3], **settings)
    torch.testing.assert_close(whole.directions, pieces.directions, atol=1e-5, rtol=0)


def test_balance_evens_sizes_out():
    z, _ = clouds([60, 20, 20], spread=0.5)
    nothing = torch.full((100,), -1)

    def sizes(balance: float) -> torch.Tensor:
        found = refine_mixture(z, z[[0, 65, 85]], labels=nothing, temperature=0.2, balance=balance, n_iter=200)
        return (z @ found.directions.T / 0.2 + found.offsets).softmax(dim=1).mean(dim=0)

    assert sizes(50.0).std() < sizes(4.0).std() < sizes(0.0).std()
    torch.testing.assert_close(sizes(1000.0), torch.full((3,), 1 / 3), atol=0.01, rtol=0)


def test_known_classes_keep_their_place_and_new_ones_are_found():
    z, truth = clouds([30, 30, 30, 30, 30], dim=16, spread=0.15)
    labels = torch.where((truth < 2) & (torch.arange(150) % 3 == 0), truth, -1)
    found = fit_mixture(z, 5, labels=labels, n_known=2, temperature=0.05, balance=4.0, n_iter=60, n_init=5, seed=3)
    best = (z @ found.directions.T).argmax(dim=1)
    assert (best[truth == 0] == 0).all()
    assert (best[truth == 1] == 1).all()
    assert len({(int(t), int(b)) for t, b in zip(truth, best, strict=True)}) == 5


def test_a_seed_gives_the_same_mixture_twice_and_restarts_only_help():
    z, _ = clouds([12] * 10, spread=0.3)
    settings = {"labels": torch.full((120,), -1), "n_known": 0, "temperature": 0.05, "balance": 1.0, "n_iter": 30}
    one, again = (fit_mixture(z, 10, n_init=1, seed=0, **settings) for _ in range(2))
    assert torch.equal(one.directions, again.directions)
    assert fit_mixture(z, 10, n_init=6, seed=0, **settings).fit >= one.fit


def test_too_few_categories():
    with raises(ConfigError, "fewer-categories-than-classes"):
        fit_mixture(torch.eye(4), 1, labels=torch.tensor([0, 1, -1, -1]), n_known=2)
