"""A small backbone with random weights, and a few images."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from newkind.backbone.build_time import ViewRates
from newkind.backbone.cache_plan import CacheKey
from newkind.backbone.loader import Backbone, load_backbone
from newkind.config import BackboneConfig
from newkind.data import Collection, read_folder
from newkind.data.items import FileImages


@pytest.fixture(scope="session")
def config() -> BackboneConfig:
    return BackboneConfig(name="vit_tiny_patch16_224", random_weights=True, image_size=32, views=3, device="cpu")


@pytest.fixture(scope="session")
def backbone(config: BackboneConfig) -> Backbone:
    return load_backbone(config)


@pytest.fixture
def key(config: BackboneConfig, backbone: Backbone) -> CacheKey:
    return CacheKey(
        backbone=config.name,
        weights_sha256=backbone.sha256,
        n_tuned=1,
        recipe=backbone.recipe,
        n_views=config.views,
        seed=0,
    )


@pytest.fixture(autouse=True)
def cache_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of all token caches; no test touches the user's."""
    monkeypatch.setenv("NEWKIND_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "tokens"


@pytest.fixture
def photographs(tmp_path: Path, make_image: Callable[..., Path]) -> Path:
    for i in range(21):
        make_image(tmp_path / "photos" / ("a" if i % 2 else "b") / f"{i:02d}.png", seed=i, size=(40 + i, 36))
    return tmp_path / "photos"


@pytest.fixture
def collection(photographs: Path) -> Collection:
    return read_folder(photographs)


@pytest.fixture
def damaged_collection(photographs: Path) -> Collection:
    """21 images and one file that is not an image."""
    (photographs / "a" / "bad.png").write_text("no image")
    return read_folder(photographs)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often a build reads each image file, by name; whatever decodes a file has to read it. No times are estimated."""
    counts: Counter[str] = Counter()
    read = FileImages.content

    def counted(images: FileImages, index: int) -> bytes:
        counts[images.names[index]] += 1
        return read(images, index)

    monkeypatch.setattr(FileImages, "content", counted)
    rates = ViewRates(trunk=0.0, image=0.0, crop=0.0, n_cpus=1, n_busy=1)
    monkeypatch.setattr("newkind.backbone.sources.measure_rates", lambda *_: rates)
    return counts
