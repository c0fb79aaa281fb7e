"""Cached features of a frozen backbone: the tuned block's before training, one store per view, safe against kill -9."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from newkind.backbone.cache_folders import list_caches
from newkind.backbone.loader import Backbone, load_backbone
from newkind.backbone.online import OnlineTokens
from newkind.backbone.sources import open_cache, plan_caches
from newkind.backbone.token_cache import TokenCache
from newkind.config import BackboneConfig
from newkind.data import Collection, read_folder
from newkind.data.views import random_views

TIMEOUT = 240
VIEWS = (0, 1, 2, 3)


@pytest.fixture(scope="module")
def frozen_config(config: BackboneConfig) -> BackboneConfig:
    return replace(config, tuned_blocks=0, views=0)


@pytest.fixture(scope="module")
def frozen(frozen_config: BackboneConfig) -> Backbone:
    return load_backbone(frozen_config)


def read(cache: TokenCache, images: np.ndarray, views: tuple[int, ...]) -> torch.Tensor:
    """Features (n_views, n, d)."""
    (found,) = cache.evaluation_batches(iter([images]), views)
    assert found.tokens.xhat.shape[1] == 0
    return found.tokens.cls.view(len(views), len(images), -1)


def stores(root: Path) -> dict[str, dict[str, bytes]]:
    """Content of all files of all stores, by folder."""
    return {
        folder.name: {file.name: file.read_bytes() for file in folder.iterdir() if file.name != "lock"}
        for folder in root.iterdir()
    }


def test_a_feature_is_what_the_tuned_block_gives_before_training(
    collection, config, backbone, frozen_config, frozen
) -> None:
    """From the same image and view: tokens through the tuned block, and all blocks at once."""
    images = np.array([7, 0, 20])
    features = read(open_cache(collection, frozen_config, frozen, views=(0, 1, 2)), images, (0, 1, 2))
    online = OnlineTokens(collection.catalog.items, backbone.trunk, backbone.recipe)
    (exact,) = online.evaluation_batches(iter([images]), (0, 1, 2))
    torch.testing.assert_close(features.flatten(0, 1), backbone.tuned(exact.tokens).detach(), atol=1e-5, rtol=1e-5)
    stored = open_cache(collection, config, backbone)
    (half,) = stored.evaluation_batches(iter([images]), (0, 1, 2))
    error = features.flatten(0, 1) - backbone.tuned(half.tokens).detach()
    assert error.norm() / features.norm() < 1e-3  # the error of half precision
    assert (features[1] - features[2]).abs().max() > 1e-3  # random views differ


def test_numbered_views(collection, frozen_config, frozen) -> None:
    """The views are those of their recipes; online tokens have the same views as the cache."""
    images = np.arange(5)
    features = read(open_cache(collection, frozen_config, frozen, views=VIEWS), images, VIEWS)
    online = OnlineTokens(collection.catalog.items, frozen.trunk, frozen.recipe)
    (found,) = online.evaluation_batches(iter([images]), VIEWS)
    torch.testing.assert_close(features.flatten(0, 1), found.tokens.cls, atol=1e-5, rtol=1e-5)
    recipe = frozen.recipe
    from newkind.data.views import evaluation_view, resize_for_views

    plain = torch.stack(
        [evaluation_view(resize_for_views(collection.catalog.items.open(i), recipe), recipe) for i in images]
    )
    torch.testing.assert_close(features[0], frozen.trunk(plain).cls, atol=1e-5, rtol=1e-5)


def test_more_views_are_added_to_what_is_there(
    collection: Collection, frozen_config, frozen, cache_root: Path, reads: Counter[str]
) -> None:
    open_cache(collection, frozen_config, frozen)
    before = stores(cache_root)
    reads.clear()
    open_cache(collection, frozen_config, frozen, views=VIEWS)
    assert set(reads.values()) == {2}  # once for the digest, once to decode it for all missing views
    after = stores(cache_root)
    assert len(after) == len(VIEWS)
    assert before.items() <= after.items()
    reads.clear()
    assert open_cache(collection, frozen_config, frozen, views=(0, 1)).usable.all()
    assert set(reads.values()) == {1}  # nothing is decoded
    assert all(not plan.todo for plan in plan_caches(collection, frozen_config, frozen, views=VIEWS))


def test_a_store_does_not_depend_on_which_views_are_computed_together(
    collection, frozen_config, frozen, tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr("newkind.backbone.cache_plan.FEATURE_GROUP", 5)
    monkeypatch.setenv("NEWKIND_CACHE", str(tmp_path / "together"))
    open_cache(collection, frozen_config, frozen, views=(0, 1, 2))
    monkeypatch.setenv("NEWKIND_CACHE", str(tmp_path / "apart"))
    for views in ((1,), (0,), (0, 1, 2)):
        open_cache(collection, frozen_config, frozen, views=views)
    assert stores(tmp_path / "together" / "tokens") == stores(tmp_path / "apart" / "tokens")


def test_training_draws_random_views_only(collection, frozen_config, frozen) -> None:
    cache = open_cache(collection, replace(frozen_config, views=3), frozen)
    assert cache.n_views == 3
    batch = np.array([4, 9])
    (drawn,) = cache.training_batches(iter([batch]), n_views=2, seed=(0, 0))
    every = read(cache, batch, random_views(3))  # (3, 2, d)
    for row, feature in enumerate(drawn.cls):
        assert any(torch.equal(feature, view) for view in every[:, row % 2])


def test_a_million_images_need_less_than_five_gigabytes(collection) -> None:
    config = BackboneConfig(image_size=14, tuned_blocks=0, views=0, random_weights=True, device="cpu")
    (plan,) = plan_caches(collection, config, load_backbone(config))
    assert plan.layout.record_bytes + 24 < 5e9 / 1e6  # ViT-S/14 and its entry in the index


def test_features_are_listed(collection, frozen_config, frozen) -> None:
    open_cache(collection, frozen_config, frozen, views=(0, 1, 2))
    assert sorted(cache.content for cache in list_caches()) == [
        "features, evaluation view",
        "features, random view 1",
        "features, random view 2",
    ]
    assert {cache.n_images for cache in list_caches()} == {21}


BUILDER = """
import sys
from pathlib import Path
from newkind.backbone import cache_plan
from newkind.backbone.loader import load_backbone
from newkind.backbone.sources import open_cache
from newkind.config import BackboneConfig
from newkind.data import read_folder
cache_plan.FEATURE_GROUP = 4  # many moments at which a build can be killed
config = BackboneConfig(
    name="vit_tiny_patch16_224", random_weights=True, image_size=32, views=0, tuned_blocks=0, device="cpu"
)
open_cache(read_folder(Path(sys.argv[1])), config, load_backbone(config), views=(0, 1, 2))
"""


def start_builder(photographs: Path, root: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", BUILDER, str(photographs)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1", "NEWKIND_CACHE": str(root)},
    )


def kill_after(process: subprocess.Popen[str], root: Path, n_records: int) -> bool:
    """Kill the builder when so many records are in all stores together; whether it had not finished."""
    deadline = time.monotonic() + TIMEOUT
    while process.poll() is None and time.monotonic() < deadline:
        if sum(index.stat().st_size for index in root.glob("tokens/*/index.bin")) >= n_records * 24:
            break
        time.sleep(0.001)
    process.kill()
    process.communicate(timeout=TIMEOUT)
    return process.returncode == -signal.SIGKILL


def test_kill_dash_nine_at_any_moment_leaves_the_same_bytes(photographs, tmp_path) -> None:
    source = photographs / "a" / "01.png"
    for i in range(100):
        (photographs / "a" / f"more{i}.png").write_bytes(source.read_bytes() + bytes([i]))
    whole, torn = tmp_path / "whole", tmp_path / "torn"
    process = start_builder(photographs, whole)
    _, errors = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0, errors
    killed = [kill_after(start_builder(photographs, torn), torn, n) for n in (4, 100, 220)]
    assert sum(killed) >= 2
    process = start_builder(photographs, torn)
    _, errors = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0, errors
    assert stores(whole / "tokens") == stores(torn / "tokens")
    assert len(read_folder(photographs).catalog) == 121
