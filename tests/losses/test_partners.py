"""Partners: by hand, and how often each one is drawn."""

import numpy as np
import torch

from newkind.losses import nearest_partners, random_partners


def test_a_partner_is_another_one_of_the_class() -> None:
    labels = torch.tensor([3, 0, 3, 3, 0, 7])
    generator = torch.Generator().manual_seed(0)
    counts = np.zeros((6, 6))
    for _ in range(400):
        for i, j in enumerate(random_partners(labels, generator).tolist()):
            counts[i, j] += 1
    allowed = np.array(
        [  # only the 7 is alone, and so its own partner
            [0, 0, 1, 1, 0, 0],
            [0, 0, 0, 0, 1, 0],
            [1, 0, 0, 1, 0, 0],
            [1, 0, 1, 0, 0, 0],
            [0, 1, 0, 0, 0, 0],
            [0, 0, 0, 0, 0, 1],
        ]
    )
    assert np.array_equal(counts > 0, allowed > 0)
    assert np.all(np.abs(counts - 400 * allowed / allowed.sum(axis=1, keepdims=True)) < 60)  # six standard deviations


def test_the_same_generator_draws_the_same() -> None:
    labels = torch.arange(40) % 4
    first, again, other = (random_partners(labels, torch.Generator().manual_seed(seed)) for seed in (5, 5, 6))
    assert first.tolist() == again.tolist() != other.tolist()
    assert random_partners(labels[:0], None).shape == (0,)


def test_the_nearest_by_the_angle() -> None:
    features = torch.tensor([[1.0, 0.0], [50.0, 5.0], [0.0, 1.0], [-0.1, 1.0], [-1.0, 0.9]], requires_grad=True)
    assert nearest_partners(features).tolist() == [1, 0, 3, 2, 3]


def test_the_nearest_is_the_double_loop() -> None:
    x = torch.randn(20, 6, generator=torch.Generator().manual_seed(0)).double().numpy()
    cosine = [[a @ b / np.linalg.norm(a) / np.linalg.norm(b) for b in x] for a in x]
    expected = [max((j for j in range(20) if j != i), key=lambda j, i=i: cosine[i][j]) for i in range(20)]
    assert nearest_partners(torch.from_numpy(x)).tolist() == expected


def test_alone_or_nobody() -> None:
    assert nearest_partners(torch.ones(1, 3)).tolist() == [0]
    assert nearest_partners(torch.ones(0, 3)).shape == (0,)
