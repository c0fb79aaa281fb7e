"""Rows of the studies have the settings that they should have."""

from dataclasses import asdict, replace

import pytest

from newkind.config import DiscoverConfig, NCategories
from newkind.experiments.paper.dataset import BenchData
from newkind.experiments.paper.plan_study import study_cell
from newkind.experiments.paper.protocol import Protocol
from newkind.experiments.paper.rows import (
    PAPER_ORDER,
    Row,
    ablation_rows,
    distribution_rows,
    epsilon_rows,
    k_rows,
    method_rows,
    pilot_rows,
    recipe_rows,
    system_rows,
    unknown_k_rows,
)
from newkind.methods.registry import METHODS, method_config
from newkind.optimizer_config import OptimizerConfig
from newkind.pipeline.configure import own_optimizer


def config_of(data: BenchData, protocol: Protocol, row: Row) -> DiscoverConfig:
    return study_cell(data, protocol, row, seed=0).config


def numbers(rows: list[Row]) -> list[int | str | None]:
    """Fixed number, rule, or None per row."""
    return [row.n_categories and (row.n_categories.number or row.n_categories.rule) for row in rows]


def test_all_methods_in_the_order_of_the_paper(data: BenchData, cub: BenchData) -> None:
    assert {*PAPER_ORDER, "modern"} == set(METHODS)
    assert PAPER_ORDER[0] == "kmeans"
    assert PAPER_ORDER[-2:] == ("gcd", "simgcd")
    assert [row.label for row in method_rows(data, ("gcd", "simgcd"))] == ["GCD", "SimGCD"]
    assert all(row.published is None for row in method_rows(data, PAPER_ORDER))
    assert method_rows(cub, ("gcd",))[0].published == (51.3, 56.6, 48.7)


@pytest.mark.parametrize("recipe", ["release", "paper"])
def test_ablation(data: BenchData, protocol: Protocol, recipe: str) -> None:
    protocol = replace(protocol, recipe=recipe)
    rows = ablation_rows(data, recipe)
    assert [row.label for row in rows] == ["GCD", "+SL", "+BR", "+SD", "+TW", "+JT"]
    assert [row.method for row in rows] == ["gcd"] + ["simgcd"] * 5
    sl, br, sd, tw, jt = (config_of(data, protocol, row).method for row in rows[1:])
    full = method_config("simgcd", recipe=recipe)
    assert (sl.supervision, sl.classifier_on, sl.joint) == ("self-label", "projector", False)
    assert br == replace(sl, classifier_on="backbone")
    assert (sd.supervision, sd.classifier_on, sd.joint) == ("self-distil", "backbone", False)
    assert sd.teacher_start == sd.teacher_end == full.teacher_end
    assert tw == replace(full, joint=False)
    assert tw.teacher_start > tw.teacher_end
    assert jt == full


def test_pilot_has_every_combination_and_simgcd_among_them(data: BenchData, protocol: Protocol) -> None:
    found = [config_of(data, protocol, row).method for row in pilot_rows(data)]
    cells = {(c.supervision, c.classifier_on, c.joint) for c in found}
    assert len(found) == len(cells) == 16
    assert method_config("simgcd") in found


def test_only_the_row_of_simgcd_itself_has_published_scores(cub: BenchData) -> None:
    for rows in (pilot_rows(cub), ablation_rows(cub, "release")[1:]):
        assert [row.published for row in rows if row.published] == [(60.3, 65.6, 57.7)]


def test_epsilons_differ_in_nothing_else(data: BenchData, cub: BenchData, protocol: Protocol) -> None:
    found = [asdict(config_of(data, protocol, row).method) for row in epsilon_rows(data, (0.0, 1.0, 4.0))]
    assert [config.pop("entropy_weight") for config in found] == [0, 1, 4]
    assert found[0] == found[1] == found[2]
    published = [row.published for row in epsilon_rows(cub, (0.0, 1.0, 2.0))]
    assert published == [None, None, (60.3, 65.6, 57.7)]


def test_k_is_never_below_the_known_classes(data: BenchData) -> None:
    assert numbers(k_rows(data, ["simgcd"], ())) == [4, 6, 8, 9, 12]
    few = k_rows(replace(data, truth=replace(data.truth, class_names=data.truth.class_names[:5])), ["simgcd"], ())
    assert numbers(few)[0] == 4
    rows = k_rows(data, ["simgcd", "gcd"], (1.0, 2.0))
    assert len(rows) == 15
    assert {row.label for row in rows} == {"SimGCD, epsilon 1", "SimGCD, epsilon 2", "GCD"}
    many = replace(data.collection.catalog, class_names=("a", "b", "c", "d", "e"))
    clipped = k_rows(replace(data, collection=replace(data.collection, catalog=many)), ["simgcd"], ())[0]
    assert numbers([clipped]) == [5]
    assert clipped.values["factor"] != "0.75 x"  # the table says that it was clipped


def test_unknown_k(data: BenchData) -> None:
    rows = unknown_k_rows(data, ["gcd", "simgcd"], 7)
    assert numbers(rows) == [None, 7, 12, "estimated"] * 2
    assert not any(row.is_open for row in rows)
    assert [row.is_open for row in unknown_k_rows(data, ["gcd"], None)] == [False, True, False, False]


def test_recipes(data: BenchData, protocol: Protocol) -> None:
    rows = recipe_rows(data, "release")
    assert [row.method for row in rows[::3]] == ["kmeans", "gcd", "simgcd", "modern"]
    assert numbers(rows) == [None, "estimated", 12] * 4
    published, modern = (config_of(data, protocol, row) for row in (rows[8], rows[11]))
    assert (published.method_name, modern.method_name) == ("simgcd", "modern")
    assert published.n_categories == NCategories("fixed", 12, from_truth=True)
    assert modern.n_categories == NCategories("at-most", 12)


def test_distribution_has_the_classifier_on_the_same_representation(data: BenchData) -> None:
    rows = distribution_rows(data, ("uno", "gcd", "simgcd"))
    assert [row.method for row in rows] == ["uno", "gcd", "simgcd", "simgcd"]
    assert rows[2].settings == {"joint": False}
    assert len(distribution_rows(data, ("uno", "gcd"))) == 2


def test_systems_have_their_own_and_equal_optimizers(data: BenchData) -> None:
    protocol = Protocol(seeds=1, epochs=2)
    rows = system_rows(data, (*PAPER_ORDER, "modern"))
    twice = [row.method for row in rows if row.equal]
    assert twice == ["rankstats", "uno", "orca", "debiaspl"]  # the others have the optimizer of SimGCD
    assert [row.method for row in rows if not row.equal] == [*PAPER_ORDER, "modern"]
    for row in rows:
        found = config_of(data, protocol, row)
        own = own_optimizer(row.method, len(data.collection.catalog))
        if row.method != "kmeans":
            expected = replace(OptimizerConfig(), decay_vectors=own.decay_vectors) if row.equal else own
            assert found.training.optimizer == expected
            assert found.training.epochs == 2
    equal = {row.method: config_of(data, replace(protocol, equal=True), row) for row in rows if not row.equal}
    assert all(config.training.learning_rate == 0.1 for name, config in equal.items() if name != "kmeans")
    given = config_of(data, replace(protocol, batch_size=40), rows[1]).training.optimizer
    assert (given.batch_size, given.weight_decay) == (40, 1e-4)
    cells = [study_cell(data, protocol, row, seed=0).name for row in rows]
    assert len(set(cells)) == len(rows)
