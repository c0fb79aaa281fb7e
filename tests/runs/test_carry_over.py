"""Ids of categories when the answer of a model is computed again."""

from dataclasses import replace

import numpy as np
from small_answer import small_answer

from newkind.runs.carry_over import with_stable_ids


def test_ids_follow_the_images() -> None:
    last = small_answer()
    swapped = np.array([0, 1, 4, 2, 3])  # new categories in another order
    again = replace(last, category=swapped[last.category], second=swapped[last.second])
    stable = with_stable_ids(again, last)
    assert [state.id for state in stable.categories] == ["cat", "dog", "new-02", "new-03", "new-01"]
    assert [line.category for line in stable.assignments()] == [line.category for line in last.assignments()]


def test_categories_without_a_counterpart_get_an_id_that_nothing_had() -> None:
    last = small_answer()
    two = replace(last, categories=last.categories[:4], category=np.minimum(last.category, 3))
    stable = with_stable_ids(last, two)
    assert [state.id for state in stable.categories][:2] == ["cat", "dog"]
    assert sorted(state.id for state in stable.categories[2:]) == ["new-01", "new-02", "new-03"]


def test_images_that_are_gone_do_not_matter() -> None:
    last = small_answer()
    fewer = replace(last, **{
        name: getattr(last, name)[10:]
        for name in ("files", "category", "status", "confidence", "second", "second_confidence", "novelty", "outlier")
    })  # fmt: skip
    assert [state.id for state in with_stable_ids(fewer, last).categories] == [state.id for state in last.categories]
