"""Rank statistics on features made by hand, and against sets in plain Python."""

import pytest
import torch

from newkind.losses import same_dimensions, top_dimensions


def test_by_hand() -> None:
    features = torch.tensor(
        [
            [9.0, 8.0, 0.0, -7.0],
            [1.0, 2.0, 0.5, -9.0],  # the same two stand out, in another order
            [0.0, 5.0, 6.0, -1.0],
            [9.0, 0.0, 1.0, -8.0],
        ]
    )
    by_value = top_dimensions(features, top_k=2)
    assert by_value.tolist() == [[0, 1], [0, 1], [1, 2], [0, 2]]
    assert same_dimensions(by_value).tolist() == [
        [True, True, False, False],
        [True, True, False, False],
        [False, False, True, False],
        [False, False, False, True],
    ]
    assert top_dimensions(features, top_k=2, by_magnitude=True).tolist() == [[0, 1], [1, 3], [1, 2], [0, 3]]


@pytest.mark.parametrize("top_k", [1, 3, 8])
@pytest.mark.parametrize("by_magnitude", [False, True])
def test_is_the_comparison_of_sets(top_k: int, by_magnitude: bool) -> None:
    features = torch.randn(30, 8, generator=torch.Generator().manual_seed(0))
    rows = features.abs().tolist() if by_magnitude else features.tolist()
    sets = [set(sorted(range(8), key=lambda d, row=row: row[d])[-top_k:]) for row in rows]
    found = same_dimensions(top_dimensions(features, top_k=top_k, by_magnitude=by_magnitude))
    assert found.tolist() == [[a == b for b in sets] for a in sets]


def test_there_is_no_gradient_and_no_row_is_no_pair() -> None:
    features = torch.randn(3, 8, requires_grad=True)
    assert not top_dimensions(features, top_k=5).requires_grad
    assert same_dimensions(top_dimensions(features[:0], top_k=5)).shape == (0, 0)
