"""Features whose squares overflow or vanish in float32: refused, never a wrong result."""

import numpy as np
import pytest
import torch

from error_codes import raises
from newkind.clustering import k_means
from newkind.clustering.n_categories import estimate_n_categories
from newkind.data import from_features
from newkind.errors import DataError

CLOUDS = np.random.default_rng(0).normal(size=(12, 3))
LABELS = [0, 0, 1, 1, *[-1] * 8]


@pytest.mark.parametrize("scale", [1e-300, 1e-39, 1e-30, 1e-20, 1e13, 1e20, 1e30, 1e39, 1e300])
def test_features_of_any_other_scale_are_refused(scale: float) -> None:
    with raises(DataError, "feature-scale"):
        from_features(CLOUDS * scale, LABELS)
    with raises(DataError, "feature-scale"):
        k_means(torch.from_numpy(CLOUDS * scale), 2)
    with pytest.raises(DataError):  # in float32, the largest ones are infinite
        estimate_n_categories(CLOUDS * scale, LABELS, n_known=2)


@pytest.mark.parametrize("scale", [1e-10, 1e-3, 1.0, 1e6, 1e10])
def test_usual_scales_give_the_same_clusters(scale: float) -> None:
    assert len(from_features(CLOUDS * scale, LABELS).catalog) == 12
    found = k_means(torch.from_numpy(CLOUDS * scale), 2, seed=0).labels
    assert torch.equal(found, k_means(torch.from_numpy(CLOUDS), 2, seed=0).labels)


def test_one_row_of_another_scale_is_named_and_a_row_of_zeros_is_allowed() -> None:
    rows = CLOUDS.copy()
    rows[5] = 0
    assert len(from_features(rows, LABELS).catalog) == 12
    rows[7] *= 1e-20
    with raises(DataError, "feature-scale") as caught:
        from_features(rows, LABELS)
    assert caught.value.facts["row"] == 7
