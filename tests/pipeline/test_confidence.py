"""Calibrated confidences, unsure images and outliers, from discover to predict, with files and without."""

import json
from pathlib import Path

import numpy as np
import pytest

import newkind
from error_codes import raises
from feature_clusters import feature_clusters
from newkind.api import Discovery
from newkind.errors import ConfigError
from newkind.pipeline.evaluate import evaluate_run
from newkind.runs.assignments import COLUMNS, read_assignments, read_categories
from newkind.runs.run import Run

P = 0.9


def discovered(folder: Path, name: str = "run", **options) -> Discovery:
    """A run of eight clusters, of which six are known."""
    path = folder / "clusters.npz"
    if not path.exists():
        found = feature_clusters(8, 6, n_each=24)
        rng = np.random.default_rng(1)
        found["features"] += 1.2 * rng.normal(size=found["features"].shape).astype(np.float32)
        np.savez(path, **found)
    return newkind.discover(path, folder / name, epochs=2, batch_size=32, report=False, **options)


def test_images_below_the_confidence_are_unsure_and_lose_nothing(tmp_path: Path) -> None:
    all_of_them, sure = discovered(tmp_path), discovered(tmp_path, "sure", min_confidence=P)
    n_unsure = 0
    for before, now in zip(all_of_them.assignments, sure.assignments, strict=True):
        assert (now.category, now.second, now.confidence) == (before.category, before.second, before.confidence)
        if before.status == "labelled":
            assert now.status == "labelled"
        elif abs(now.confidence - P) > 1e-3:
            assert now.status == ("unsure" if now.confidence < P else before.status)
        n_unsure += now.status == "unsure"
    assert 0 < n_unsure < len(sure.assignments) // 2
    assert sure.outcome is not None
    assert sure.outcome.count("unsure") == n_unsure == sum(category.n_unsure for category in sure.categories)
    assert read_assignments(sure.run) == sure.assignments
    assert read_categories(sure.run) == sure.categories
    assert [c.n_images for c in sure.categories] == [c.n_images for c in all_of_them.categories]


def test_scores_of_the_sure_images_stand_beside_those_of_all(tmp_path: Path) -> None:
    plain, sure = (discovered(tmp_path, name, min_confidence=p) for name, p in (("a", 0.0), ("b", P)))
    before, now = (run.run.read_json(run.run.scores_file) for run in (plain, sure))
    assert before.pop("sure") is None
    found = now.pop("sure")
    assert now == before
    free = [line for line in sure.assignments if line.status != "labelled"]
    assert found["coverage"] == pytest.approx(np.mean([line.status != "unsure" for line in free]))
    assert found["by_name"] > now["by_name"]["all"]
    truth = np.load(tmp_path / "clusters.npz")["truth"]
    lines = ["file,truth", *(f"{line.file},{t}" for line, t in zip(sure.assignments, truth, strict=True))]
    (tmp_path / "truth.csv").write_text("\n".join(lines) + "\n")
    again = evaluate_run(sure.run, tmp_path / "truth.csv").evaluation.sure
    assert again is not None
    assert again.coverage == pytest.approx(found["coverage"])
    assert again.by_name == pytest.approx(found["by_name"])


def test_the_same_run_is_written_again_with_another_confidence(tmp_path: Path) -> None:
    first, second = discovered(tmp_path), discovered(tmp_path, min_confidence=P)
    assert first.outcome is not None
    assert second.outcome is not None
    assert first.outcome.count("unsure") == 0 < second.outcome.count("unsure")


def test_predict_uses_the_calibration_and_knows_unsure_images_and_outliers(tmp_path: Path) -> None:
    found = discovered(tmp_path)
    card = json.loads((found.run.model_card).read_text())["confidence"]
    assert card["calibrated"] is True
    assert found.model.calibrated
    assert found.model.network.method.temperature == pytest.approx(card["temperature"], rel=1e-5)
    again = newkind.predict(tmp_path / "run", tmp_path / "clusters.npz", min_confidence=P)
    for line, new in zip(found.assignments, again, strict=True):
        if line.status != "labelled":
            assert new.category == line.category
            assert new.confidence == pytest.approx(line.confidence, abs=1e-3)
            assert new.outlier == line.outlier
            if abs(new.confidence - P) > 1e-3:
                assert (new.status == "unsure") == (new.confidence < P)
    header, *rows = found.run.assignments_file.read_text().splitlines()
    assert tuple(header.split(",")) == COLUMNS
    assert {row.rsplit(",", 1)[1] for row in rows} <= {"yes", "no"}


def test_other_methods_say_that_they_are_not_calibrated(tmp_path: Path) -> None:
    found = discovered(tmp_path, method="kmeans")
    card = found.run.read_json(found.run.model_card)["confidence"]
    assert card["calibrated"] is False
    assert card["reason"]
    assert not found.model.calibrated
    assert all(line.outlier is None for line in read_assignments(Run(tmp_path / "run")))


@pytest.mark.parametrize("value", [-0.1, 1.5, float("nan")])
def test_a_confidence_is_between_0_and_1(tmp_path: Path, value: float) -> None:
    with raises(ConfigError, "out-of-range"):
        discovered(tmp_path, min_confidence=value)
    with raises(ConfigError, "out-of-range"):
        discovered(tmp_path).predict(tmp_path / "clusters.npz", min_confidence=value)
