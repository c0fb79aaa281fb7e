"""Estimated costs of many runs: shared views count once, stored views not at all, epochs in proportion."""

from dataclasses import replace
from pathlib import Path

import pytest

from feature_clusters import feature_clusters
from newkind.config import BackboneConfig
from newkind.data import from_features, read_folder
from newkind.effort import Amount
from newkind.experiments.cells import Cell, make_cell
from newkind.experiments.collection_digest import collection_digest
from newkind.experiments.study_cost import estimate_cost
from newkind.pipeline.configure import configure

SMALL = BackboneConfig(
    name="vit_tiny_patch16_224", image_size=32, views=2, device="cpu", trunk_precision="fp32", patch_tokens=0
)


def cell(collection, method: str, seed: int, epochs: int = 2) -> Cell:
    config = configure(collection, method=method, n_categories=3, amount=Amount(epochs=epochs, views=2), backbone=SMALL)
    config = replace(config, training=replace(config.training, seed=seed))
    return make_cell(collection, config, title="x", prefix="x", digest=collection_digest(collection))


def test_views_are_shared_and_weights_need_not_be_here(
    pile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEWKIND_CACHE", str(tmp_path / "cache"))
    collection = read_folder(pile)
    one = estimate_cost([cell(collection, "rankstats", 0)])
    three = estimate_cost(
        [cell(collection, "rankstats", 0), cell(collection, "rankstats", 1), cell(collection, "simgcd", 0)]
    )
    assert one.n_views == three.n_views == 9 * 3  # two random views and the evaluation view
    assert one.n_bytes == three.n_bytes > 0
    assert one.random_weights
    assert one.view_seconds > 0
    assert one.seconds == one.view_seconds + one.training_seconds
    assert not (tmp_path / "cache").exists()


def test_ready_features_cost_only_their_training() -> None:
    clouds = feature_clusters(6, 3, n_each=20)
    collection = from_features(clouds["features"], clouds["labels"], truth=clouds["truth"])
    cost = estimate_cost([cell(collection, "rankstats", seed) for seed in range(3)])
    alone = estimate_cost([cell(collection, "rankstats", 0)])
    assert (cost.n_views, cost.n_bytes, cost.view_seconds) == (0, 0, 0.0)
    assert cost.training_seconds > 0
    assert alone.training_seconds > 0
    assert not cost.random_weights
