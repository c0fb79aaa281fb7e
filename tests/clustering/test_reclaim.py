"""Samples that known classes reclaim, against a plain computation, one sample at a time."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from newkind.clustering import membership, reclaim
from newkind.clustering.mixture import Mixture
from newkind.clustering.reclaim import reclaim_known

N_KNOWN, K = 3, 7


def problem(seed=0, n=90, dim=6):
    """Overlapping unit vectors, labels of some of the first classes, and a mixture that is not yet good."""
    g = torch.Generator().manual_seed(seed)
    truth = torch.arange(n) % K
    z = F.normalize(torch.randn(K, dim, generator=g)[truth] + 0.8 * torch.randn(n, dim, generator=g), dim=1)
    labels = torch.where((truth < N_KNOWN) & (torch.rand(n, generator=g) < 0.4), truth, -1)
    directions = F.normalize(torch.randn(K, dim, generator=g), dim=1)
    return z, labels, Mixture(directions, 0.3 * torch.randn(K, generator=g), -1.0)


def plain(z, labels, mixture, *, temperature):
    """Directions after the moves, and which changed; the module's docstring in NumPy."""
    z, c, b = z.double().numpy(), mixture.directions.double().numpy().copy(), mixture.offsets.double().numpy()
    q = np.zeros((len(z), K))
    for i, label in enumerate(labels.tolist()):
        e = np.exp(z[i] @ c.T / temperature + b)
        q[i] = np.eye(K)[label] if label >= 0 else e / e.sum()
    free = np.flatnonzero(labels.numpy() < 0).tolist()
    own = {i: int((z[i] @ c.T).argmax()) for i in free}
    wishes = []
    for i in free:
        if own[i] >= N_KNOWN:
            others = sum(q[j, own[i]] * z[j] for j in range(len(z)) if j != i)
            target = int((z[i] @ c[:N_KNOWN].T).argmax())
            wishes.append((z[i] @ c[target] - z[i] @ others / np.linalg.norm(others), i, target))
    left, touched = np.bincount(list(own.values()), minlength=K), set()
    for gain, i, target in sorted(wishes, reverse=True):
        if gain > reclaim.MARGIN and left[own[i]] > 1:
            left[own[i]] -= 1
            q[i, target], q[i, own[i]] = q[i, target] + q[i, own[i]], 0.0
            touched |= {own[i], target}
    for k in touched:
        c[k] = (q[:, k, None] * z).sum(axis=0)
        c[k] /= np.linalg.norm(c[k])
    return c, touched


@pytest.mark.parametrize("seed", range(6))
def test_moves_are_those_of_a_plain_computation(seed):
    z, labels, mixture = problem(seed)
    found = reclaim_known(z, mixture, labels=labels, n_known=N_KNOWN, temperature=0.3)
    expected, touched = plain(z, labels, mixture, temperature=0.3)
    assert touched
    np.testing.assert_allclose(found.directions.numpy(), expected, atol=1e-5)
    assert (found.offsets is mixture.offsets, found.fit) == (True, -1.0)


def test_pieces_make_no_difference(monkeypatch):
    z, labels, mixture = problem()
    whole = reclaim_known(z, mixture, labels=labels, n_known=N_KNOWN, temperature=0.3)
    monkeypatch.setattr(membership, "CHUNK", 4 * K)
    monkeypatch.setattr(membership, "HELD", 1)
    pieces = reclaim_known(z, mixture, labels=labels, n_known=N_KNOWN, temperature=0.3)
    torch.testing.assert_close(whole.directions, pieces.directions, atol=1e-6, rtol=0)


def test_a_part_of_a_known_class_returns_to_it():
    """Three samples of a known class are a new category: each is nearest to it only because it contains the sample itself."""
    g = torch.Generator().manual_seed(0)
    truth = torch.arange(60) % 2
    z = F.normalize(torch.eye(2, 40)[truth] + 0.2 * torch.randn(60, 40, generator=g), dim=1)
    labels = torch.where((truth == 0) & (torch.arange(60) < 40), 0, -1)
    part = torch.tensor([50, 52, 54])
    sums = torch.stack([z[labels == 0].sum(0), z[truth == 1].sum(0), z[part].sum(0)])
    before = Mixture(F.normalize(sums, dim=1), torch.zeros(3), 0.0)
    assert ((z @ before.directions.T).argmax(dim=1)[part] == 2).all()
    after = reclaim_known(z, before, labels=labels, n_known=1)
    assigned = (z @ after.directions.T).argmax(dim=1)
    assert (assigned[part] == 0).sum() == 2
    assert (assigned[part] == 2).sum() == 1  # no category loses its last sample
    assert (assigned[truth == 1] == 1).all()


@pytest.mark.parametrize("n_known", [0, K])
def test_without_known_or_new_categories_nothing_moves(n_known):
    z, labels, mixture = problem()
    found = reclaim_known(z, mixture, labels=torch.full_like(labels, -1), n_known=n_known)
    assert found is mixture


def test_nothing_to_move_and_nothing_unlabelled():
    z, labels, mixture = problem()
    sure = torch.where(labels < 0, 0, labels)
    assert torch.equal(reclaim_known(z, mixture, labels=sure, n_known=N_KNOWN).directions, mixture.directions)
