"""A small backbone with random weights, and a few photographs."""

from collections.abc import Callable
from pathlib import Path

import pytest

from newkind.backbone.loader import Prepared, prepare_trunk
from newkind.backbone.token_cache import CacheKey
from newkind.config import BackboneConfig
from newkind.data import Collection, read_folder

CONFIG = BackboneConfig(name="vit_tiny_patch16_224", random_weights=True, image_size=32, views=3, device="cpu")


@pytest.fixture(scope="session")
def prepared() -> Prepared:
    return prepare_trunk(CONFIG)


@pytest.fixture
def key(prepared: Prepared) -> CacheKey:
    return CacheKey(
        backbone=CONFIG.backbone,
        weights_sha256=prepared.sha256,
        n_tuned=1,
        recipe=CONFIG.recipe,
        n_views=CONFIG.n_views,
        seed=0,
    )


@pytest.fixture
def photographs(tmp_path: Path, make_image: Callable[..., Path]) -> Path:
    for i in range(21):
        make_image(tmp_path / "photos" / ("a" if i % 2 else "b") / f"{i:02d}.png", seed=i, size=(40 + i, 36))
    return tmp_path / "photos"


@pytest.fixture
def collection(photographs: Path) -> Collection:
    return read_folder(photographs)
