"""The ranking of settings, and when a lead counts."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from error_codes import raises
from newkind.errors import RunError
from newkind.experiments.ranking import Ranking, Tried, rank, write_ranking


def ranked(*rows: tuple[float, ...], n_images: int = 10_000) -> Ranking:
    """Ranking of settings with these accuracies per fold; the first is the default."""
    tried = [
        Tried(
            settings={"block_rate": str(i)},
            is_default=i == 0,
            folds=tuple({"all": v, "old": None, "new": v} for v in row),
        )
        for i, row in enumerate(rows)
    ]
    return rank(tried, n_images=n_images)


def test_a_lead_is_compared_within_folds() -> None:
    ahead = ranked((0.5, 0.8), (0.6, 0.89), (0.5, 0.8))  # folds differ by 30 points, leads by one
    assert ahead.lead is not None
    assert ahead.lead.folds == pytest.approx((10, 9))
    assert ahead.lead.mean == pytest.approx(9.5)
    assert ahead.lead.is_clear
    assert ahead.chosen == {"block_rate": "1"}


@pytest.mark.parametrize(
    "unclear",
    [
        ranked((0.5, 0.8), (0.6, 0.72)),  # the lead differs between folds
        ranked((0.5, 0.8), (0.51, 0.81), n_images=100),  # one image of a hundred, in both folds
        ranked((0.5, 0.8), (0.52, 0.82), (0.7, 0.6)),  # the leads of other settings differ far more
    ],
)
def test_a_lead_within_the_uncertainty_does_not_count(unclear: Ranking) -> None:
    assert unclear.lead is not None
    assert not unclear.lead.is_clear
    assert unclear.chosen == {}
    assert not unclear.best.is_default


def test_the_uncertainty_of_few_images() -> None:
    few = ranked((0.5, 0.8), (0.51, 0.81), n_images=100)
    assert few.lead is not None
    assert few.lead.uncertainty == pytest.approx(100 * (0.65 * 0.35 / 100) ** 0.5)


def test_with_equal_scores_the_default_is_best() -> None:
    own = ranked((0.6, 0.6), (0.6, 0.6), (0.5, 0.5))
    assert own.best.is_default
    assert own.lead is None
    assert own.chosen == {}


def test_without_a_default_the_best_is_chosen() -> None:
    rows = [row for row in ranked((0.5, 0.5), (0.4, 0.4)).rows if not row.is_default]
    found = rank(rows, n_images=100)
    assert found.lead is None
    assert found.chosen == {"block_rate": "1"}
    assert found.verdict()


def test_nothing_finished() -> None:
    with raises(RunError, "nothing-finished"):
        ranked()


def test_the_files(tmp_path: Path) -> None:
    about = {"data": "d", "method": "modern", "recipe": None, "epochs": 20, "folds": 2, "seed": 0, "n_classes": 6}
    ahead = replace(ranked((0.5, 0.8), (0.6, 0.89), (0.5, 0.8)), about=about, command="newkind discover d")
    write_ranking(ahead, tmp_path)
    kept = json.loads((tmp_path / "tune.json").read_text())
    assert [row["settings"]["block_rate"] for row in kept["rows"]] == ["1", "0", "2"]
    assert kept["rows"][0]["all"] == {"mean": 74.5, "std": 20.51, "folds": [60.0, 89.0]}
    assert kept["rows"][0]["old"] == {"mean": None, "std": None, "folds": [None, None]}
    assert kept["lead"]["is_clear"]
    assert kept["method"] == "modern"
    text = (tmp_path / "tune.md").read_text()
    assert "| 1 | 74.5 ± 20.5 | - | 74.5 ± 20.5 |  |" in text
    assert ahead.verdict() in text
    assert "$ newkind discover d" in text
