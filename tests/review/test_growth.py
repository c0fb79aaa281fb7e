"""Growing a category: the bound holds in simulations, whatever the ranking is, and few looks are needed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import hypergeom

from newkind.review.growth import Growth
from newkind.review.purity import looks_needed, wrong_at_most


def grow(truth: NDArray[np.bool_], *, seed: int = 0, **options: float) -> Growth:
    """Run the procedure with a reviewer who knows which candidates belong to the category."""
    growth = Growth(len(truth), seed=seed, **options)  # type: ignore[arg-type]
    for _ in range(10 * len(truth) + 10):
        if growth.phase == "done":
            return growth
        growth.answer([int(rank) for rank in growth.shown if not truth[rank]])
    raise AssertionError("the procedure does not end")


@given(st.integers(1, 300), st.data())
def test_the_limit_is_that_of_the_hypergeometric_distribution(n_images: int, data: st.DataObject) -> None:
    n_looked = data.draw(st.integers(0, n_images))
    n_wrong = data.draw(st.integers(0, n_looked))
    limit = wrong_at_most(n_images, n_looked, n_wrong, 0.95)
    possible = np.arange(n_wrong, n_images - (n_looked - n_wrong) + 1)
    probability = hypergeom.cdf(n_wrong, n_images, possible, n_looked)
    # Probabilities that equal 0.05 but for rounding may fall on either side.
    assert limit >= possible[probability > 0.05 + 1e-9].max(initial=n_wrong)
    assert limit <= possible[probability > 0.05 - 1e-9].max(initial=n_wrong)


@given(st.integers(1, 500), st.integers(0, 200))
def test_the_number_of_looks_is_the_smallest(n_images: int, n_right: int) -> None:
    n = looks_needed(n_images, n_right, purity=0.95, confidence=0.95)
    allowed = 0.05 * (n_images + n_right) + 1e-9
    assert wrong_at_most(n_images, n, 0, 0.95) <= allowed
    assert n == 0 or wrong_at_most(n_images, n - 1, 0, 0.95) > allowed


def rankings(rng: np.random.Generator) -> dict[str, NDArray[np.bool_]]:
    """Candidates that are hard in different ways: True belongs to the category."""
    n = 600
    gap = np.arange(n) % 48
    return {
        "a clean ranking": np.arange(n) < 400,
        "spread just above the limit": rng.random(n) > 0.055,
        "spread far above the limit": rng.random(n) > 0.12,
        "wrong ones between the pages": ~((gap > 30) & (gap < 34)),
        "a sigmoid": rng.random(n) < 1 / (1 + np.exp((np.arange(n) - 300) / 60)),
        "nothing belongs": np.zeros(n, dtype=bool),
    }


@pytest.mark.parametrize("kind", rankings(np.random.default_rng(0)))
def test_a_false_statement_is_as_rare_as_stated(kind: str) -> None:
    n_runs, false = 300, 0
    for seed in range(n_runs):
        truth = rankings(np.random.default_rng(seed))[kind]
        growth = grow(truth, seed=seed)
        bound = growth.bound()
        accepted = growth.accepted
        assert bound.n_images == len(accepted)
        assert bound.purity >= 0.95
        assert bound.n_looks == growth.n_looks <= len(truth)
        false += bool(len(accepted) and truth[accepted].mean() < bound.purity)
    # 5 % plus three standard deviations.
    assert false <= 0.05 * n_runs + 3 * np.sqrt(0.05 * 0.95 * n_runs)


def test_a_clean_ranking_is_settled_with_few_looks() -> None:
    truth = np.arange(4000) < 2500
    growth = grow(truth)
    assert 2300 <= len(growth.accepted) <= 2512
    assert growth.n_looks < 230


@settings(deadline=None)
@given(st.lists(st.booleans(), max_size=120), st.integers(0, 2**32 - 1), st.integers(1, 30))
def test_every_ranking_ends_and_wrong_ones_are_never_accepted(truth: list[bool], seed: int, page: int) -> None:
    belongs = np.array(truth, dtype=bool)
    growth = grow(belongs, seed=seed, page=page)
    assert not growth.wrong[growth.accepted].any()
    assert belongs[growth.right].all()
    assert growth.bound().purity >= 0.95


def test_without_candidates_it_is_done() -> None:
    growth = Growth(0)
    assert growth.phase == "done"
    assert growth.bound().n_images == 0
