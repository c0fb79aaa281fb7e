"""Groups of items in Python, and their effect on a discovery."""

from pathlib import Path

import numpy as np
import pytest

import newkind
from error_codes import raises
from newkind.data import Collection, from_arrays, from_features
from newkind.data.groups import encode_groups
from newkind.data.labels import encode_labels
from newkind.errors import ConfigError, DataError
from newkind.pipeline.refit import plan_refit
from newkind.runs.metadata import read_groups, read_metadata


def test_groups_of_arrays() -> None:
    found = from_arrays(
        np.zeros((5, 8, 8), dtype=np.uint8), ["a", None, None, "b", None], groups=["x", "x", None, 7, float("nan")]
    )
    assert found.catalog.groups is not None
    assert found.catalog.groups.tolist() == [0, 0, -1, 1, -1]


@pytest.mark.parametrize(
    ("groups", "code"),
    [(["x", "x", "y"], "group-conflict"), (["x"], "group-count"), ([[1], [1], [2]], "group-conflict")],
)
def test_bad_groups(groups: list[object], code: str) -> None:
    with raises(DataError, code):
        from_features(np.eye(3), ["a", "b", None], groups=groups)


def test_bad_metadata() -> None:
    with raises(DataError, "length-mismatch"):
        from_features(np.eye(3), ["a", "b", None], metadata={"site": ["A"]})


def test_every_contradiction_is_counted() -> None:
    with raises(DataError, "group-conflict") as caught:
        encode_groups(["x", "x", "y", "y", "z", "z"], encode_labels(["a", "b", "c", "a", "a", "a"]))
    assert caught.value.facts["n_conflicts"] == 2


def clouds(*, groups: bool) -> Collection:
    """Four overlapping clouds, two of them known; groups of five images of one cloud."""
    rng = np.random.default_rng(0)
    kind = np.repeat(np.arange(4), 40)
    features = (3.0 * np.eye(4, 8)[kind] + rng.normal(size=(160, 8))).astype(np.float32)
    labels = np.where((kind < 2) & (np.arange(160) % 4 == 0), kind, -1)
    number = np.arange(160) // 5
    return from_features(
        features,
        labels.tolist(),
        truth=kind.tolist(),
        groups=number.tolist() if groups else None,
        metadata={"status": [f'{i} "=x",\n' for i in range(160)], "site": ["A"] * 160},
    )


def test_a_discovery_with_groups(tmp_path: Path) -> None:
    grouped, single = clouds(groups=True), clouds(groups=False)
    found = newkind.discover(grouped, tmp_path / "groups", method="kmeans", n_categories=4, report=False)
    other = newkind.discover(single, tmp_path / "single", method="kmeans", n_categories=4, report=False)
    assert grouped.catalog.groups is not None
    category = np.array([line.category for line in found.assignments])
    for group in range(32):
        assert len(set(category[grouped.catalog.groups == group])) == 1
    assert found.outcome is not None
    assert other.outcome is not None
    assert found.outcome.scores is not None
    assert other.outcome.scores is not None
    assert found.outcome.scores.all > other.outcome.scores.all
    assert found.run.config()["fingerprint"] != other.run.config()["fingerprint"]
    labelled = {int(g) for g in grouped.catalog.groups[grouped.catalog.is_labelled]}
    for line, group in zip(found.assignments, grouped.catalog.groups, strict=True):
        if group in labelled and line.status != "labelled":
            assert (line.status, line.confidence) == ("known", 1.0)


def test_a_refit_keeps_groups_together(tmp_path: Path) -> None:
    collection = clouds(groups=True)
    found = newkind.discover(collection, tmp_path / "run", method="kmeans", n_categories=4, report=False)
    assert collection.catalog.groups is not None
    assert found.run.config()["group_column"] == "group"
    groups = read_groups(found.run, [line.file for line in found.assignments])
    assert groups is not None
    assert groups.tolist() == collection.catalog.groups.tolist()
    new = next(category.name for category in found.categories if category.status == "new")
    free = [line for line in found.assignments if line.category == new]
    found.approve(files=[free[0].file])
    after = plan_refit(found.run).after
    for group in range(32):
        assert len(set(after.category[groups == group].tolist())) == 1


def test_metadata_is_carried_into_the_run(tmp_path: Path) -> None:
    import csv

    collection = clouds(groups=False)
    found = newkind.discover(collection, tmp_path / "run", method="kmeans", n_categories=4)
    metadata = read_metadata(found.run)
    assert metadata.columns == ("data_status", "site")
    assert metadata.of("003") == (collection.metadata["status"][3], "A")
    assert metadata.of("nothing") == ("", "")
    with open(found.run.assignments_file, newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0])[-2:] == ["data_status", "site"]
    assert [row["data_status"] for row in rows] == list(collection.metadata["status"])
    assert len(newkind.load(tmp_path / "run").assignments) == 160
    text = found.run.report_file.read_text()
    assert '"name":"site","values":["A"]' in text


def test_decisions_keep_the_metadata(tmp_path: Path) -> None:
    found = newkind.discover(clouds(groups=False), tmp_path / "run", method="kmeans", n_categories=4, report=False)
    found.rename("new-01", "elm")
    lines = found.run.assignments_file.read_text().splitlines()
    assert lines[0].endswith(",data_status,site")
    assert any(",elm," in line for line in lines)


def test_options_for_reading_do_not_apply_to_a_collection(tmp_path: Path) -> None:
    with raises(ConfigError, "unused-option"):
        newkind.discover(clouds(groups=False), tmp_path / "run", label_column="x")
