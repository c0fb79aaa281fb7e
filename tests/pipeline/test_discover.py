"""What a run writes down on its way: the number of categories in use, with truth and without."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from newkind.config import BackboneConfig, TrainingConfig, configure
from newkind.data import from_features
from newkind.pipeline.discover import discover


def _discover(out: Path, *, method: str, truth: bool) -> list[dict[str, float]]:
    """Five epochs on four blobs, two of them known; the lines of metrics.jsonl."""
    rng = np.random.default_rng(0)
    kind = np.repeat(np.arange(4), 20)
    features = (rng.normal(size=(4, 16))[kind] + 0.1 * rng.normal(size=(80, 16))).astype(np.float32)
    labels = np.where((kind < 2) & (np.arange(80) % 2 == 0), kind, -1)
    collection = from_features(features, labels.tolist(), truth=kind.tolist() if truth else None)
    config = configure(
        collection,
        training=TrainingConfig(epochs=5, batch_size=16, evaluate_every=2),
        trunk=BackboneConfig(),
        method=method,
        n_categories=6,
    )
    discover(collection, out, config)
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("truth", [False, True])
def test_categories_in_use_are_counted_with_truth_and_without(tmp_path: Path, truth: bool) -> None:
    metrics = _discover(tmp_path / "run", method="simgcd", truth=truth)
    assert [row["epoch"] for row in metrics if "active_prototypes" in row] == [2, 4, 5]
    assert [row["epoch"] for row in metrics if "accuracy/all" in row] == ([2, 4, 5] if truth else [])
    with open(tmp_path / "run" / "assignments.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    used = {row["category"] for row in rows if row["status"] != "labelled"}
    assert metrics[-1]["active_prototypes"] == len(used)


def test_looking_changes_nothing(tmp_path: Path) -> None:
    """The same losses to the last digit, whether images were sorted in between or not."""
    with_truth = _discover(tmp_path / "a", method="gcd", truth=True)
    without = _discover(tmp_path / "b", method="gcd", truth=False)
    assert [row["loss/total"] for row in with_truth] == [row["loss/total"] for row in without]
    assert "active_prototypes" in with_truth[-1]
    # Nobody clusters just for a count.
    assert not any("active_prototypes" in row for row in without)
