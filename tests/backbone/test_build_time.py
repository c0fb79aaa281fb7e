"""Estimated times contain reading, decoding and resizing images of the collection."""

import time

import numpy as np
import pytest
import torch
from PIL import Image

from newkind.backbone.build_time import N_SAMPLES, ViewRates, measure_rates, seconds_per_view
from newkind.backbone.loader import Backbone
from newkind.backbone.sources import announce_cache
from newkind.backbone.vit import build_vit, split
from newkind.config import BackboneConfig
from newkind.data import Collection, from_arrays
from newkind.data.decoding import broken_image
from newkind.data.items import ArrayImages
from newkind.data.names import Names

SLOW = 0.05
"""Seconds that an image takes at least."""


class SlowImages(ArrayImages):
    """Images that take their time; every third cannot be decoded."""

    opened: list[int]

    def open(self, index: int) -> Image.Image:
        self.opened.append(index)
        if index % 3 == 1:
            raise broken_image(self.names[index], "broken")
        time.sleep(SLOW)
        return super().open(index)


@pytest.fixture
def slow() -> SlowImages:
    SlowImages.opened = []
    return SlowImages(np.zeros((64, 40, 40, 3), dtype=np.uint8), Names(str(i) for i in range(64)))


def test_a_few_images_of_the_collection_are_decoded(slow: SlowImages, backbone: Backbone) -> None:
    rates = measure_rates(slow, range(64), backbone, 32)
    assert rates.image >= SLOW  # also without those that cannot be decoded
    assert rates.trunk > 0
    assert len(set(slow.opened)) == N_SAMPLES
    assert {min(slow.opened), max(slow.opened)} == {0, 63}
    assert rates.n_busy >= 1
    broken = [i for i in range(64) if i % 3 == 1]
    assert measure_rates(slow, broken, backbone, 32).image == 0
    assert measure_rates(slow, [], backbone, 32).image == 0


def test_an_image_is_decoded_once_for_all_its_views() -> None:
    rates = {"trunk": 1.0, "image": 6.0, "crop": 0.5, "n_cpus": 2}
    busy, free, half = (ViewRates(**rates, n_busy=n) for n in (2, 0, 1))
    assert busy.seconds(10, 30) == 30 + (60 + 15) / 2  # decoding takes time from a trunk on the same processors
    assert free.seconds(10, 30) == (60 + 15) / 2  # and is waited for by an accelerator
    assert free.seconds(1, 100) == 100
    assert half.seconds(10, 30) == (30 + 60 + 15) / 2


def test_the_announced_time_contains_decoding(
    config: BackboneConfig, backbone: Backbone, collection: Collection, monkeypatch: pytest.MonkeyPatch, caplog
) -> None:
    """Only of images that are not in the cache."""
    asked = []

    def measured(images, places, _backbone, _size) -> ViewRates:
        asked.append((len(images), list(places)))
        return ViewRates(trunk=0.0, image=60.0, crop=0.0, n_cpus=1, n_busy=1)

    monkeypatch.setattr("newkind.backbone.sources.measure_rates", measured)
    caplog.set_level("INFO", logger="newkind")
    announce_cache(collection, config, backbone)
    assert asked == [(21, list(range(21)))]
    assert "21 min" in caplog.text
    pixels = np.zeros((3, 40, 40, 3), dtype=np.uint8)  # of one content
    announce_cache(from_arrays(pixels, [-1, -1, -1]), config, backbone)
    assert asked[1:] == [(3, [0])]


def test_the_threads_of_the_trunk_are_counted(slow: SlowImages, backbone: Backbone) -> None:
    found = measure_rates(slow, [0], backbone, 32)
    assert found.n_busy == min(torch.get_num_threads(), found.n_cpus)


def test_the_time_per_view_is_measured() -> None:
    trunk, _ = split(build_vit("vit_tiny_patch16_224", image_size=32))
    assert 0 < seconds_per_view(trunk, 32) < 60
