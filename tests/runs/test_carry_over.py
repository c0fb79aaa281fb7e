"""Ids of categories when the answer of a model is computed again."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from small_answer import small_answer, small_run

from newkind.runs.answer import CategoryState
from newkind.runs.assignments import assignments_csv, category_rows
from newkind.runs.carry_over import carry_over, with_stable_ids
from newkind.runs.decision import Decision
from newkind.runs.decisions import Decisions


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


def test_ids_of_categories_that_persons_opened_stay_theirs() -> None:
    last = small_answer()
    two = replace(last, categories=last.categories[:4], category=np.minimum(last.category, 3))
    stable = with_stable_ids(last, two, opened={"new-03", "new-04"})
    assert sorted(state.id for state in stable.categories[2:]) == ["new-01", "new-02", "new-05"]


def test_a_final_answer_takes_no_id_of_a_split(tmp_path: Path) -> None:
    run, final = small_run(tmp_path / "run"), small_run(tmp_path / "final")
    first = Decisions(run).answer
    part = tuple(first.files[i] for i in first.members("new-01")[:2])
    assert Decisions(run).decide(Decision("split", category="new-01", groups=(part,))).decision.ids == ("new-04",)
    category = first.category.copy()
    category[first.members("new-02")[:3]] = len(first.categories)  # the final answer has one category more
    states = (*first.categories, CategoryState("new-04", "new-04", "new", prototypes=(5,)))
    more = replace(first, category=category, categories=states)
    final.write_text(final.assignments_file, assignments_csv(more.assignments()))
    final.write_json(final.categories_file, category_rows(more.list_categories()))
    with carry_over(run, final):
        for name in (run.model_assignments_file.name, run.model_categories_file.name):
            (final.folder / name).replace(run.folder / name)
    answer = Decisions(run).answer
    assert [state.id for state in answer.categories] == [*(state.id for state in first.categories), "new-05", "new-04"]
    assert {answer.files[i] for i in answer.members("new-04")} == set(part)
