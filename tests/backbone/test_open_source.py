"""Choosing a token source, and building the token cache on the way."""

import numpy as np
import pytest
import torch

from error_codes import raises
from newkind.backbone.sources import OnlineTokens, ReadyFeatures, TokenCache, announce_cache, open_source
from newkind.data import from_arrays, from_features
from newkind.device import choose_device
from newkind.errors import ConfigError, DataError


@pytest.fixture(autouse=True)
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level("INFO", logger="newkind")
    return caplog


def test_features_are_their_own_source(config) -> None:
    collection = from_features(np.eye(3, 4), [0, 1, -1])
    source = open_source(collection, config, None)
    assert isinstance(source, ReadyFeatures)
    assert source.usable.all()
    assert source.n_views == 0
    (found,) = source.evaluation_batches(iter([np.array([2, 0])]))
    assert found.rows.tolist() == [0, 1]
    assert found.tokens.cls.tolist() == np.eye(3, 4)[[2, 0]].tolist()
    (views,) = source.training_batches(iter([np.array([2, 0, 1])]), n_views=2, seed=(0,), rows=slice(1, 3))
    assert views.cls.argmax(dim=1).tolist() == [0, 1, 0, 1]
    other = open_source(from_features(2 * np.eye(3, 4), [0, 1, -1]), config, None)
    assert source.content_hash() != other.content_hash()


def test_images_need_a_backbone(collection, config) -> None:
    with raises(DataError, "no-backbone"):
        open_source(collection, config, None)


def test_the_cache_is_built_once(damaged_collection, config, backbone, log, cache_root) -> None:
    source = open_source(damaged_collection, config, backbone)
    assert isinstance(source, TokenCache)
    assert source.usable.sum() == 21
    assert [item.name for item in source.skipped] == ["a/bad.png"]
    assert source.n_views == config.views
    assert "22 images" in log.text
    assert "88 views" in log.text
    assert "GB" in log.text
    assert "bad.png" in log.text
    size = sum(path.stat().st_size for path in cache_root.rglob("tokens-*"))
    again = open_source(damaged_collection, config, backbone)
    assert again.content_hash() == source.content_hash()
    assert sum(path.stat().st_size for path in cache_root.rglob("tokens-*")) == size


def test_a_dry_run_announces_and_computes_nothing(collection, config, backbone, log, cache_root) -> None:
    announce_cache(collection, config, backbone)
    assert "21 images" in log.text
    assert "84 views" in log.text
    assert not cache_root.exists()


def test_numbers_agree_with_their_nouns(config, backbone, log) -> None:
    pixels = np.zeros((1, 40, 40, 3), dtype=np.uint8)
    announce_cache(from_arrays(pixels, [-1]), config, backbone)
    assert "1 image " in log.text


def test_online(collection, config, backbone, cache_root) -> None:
    source = open_source(collection, config, backbone, online=True)
    assert isinstance(source, OnlineTokens)
    assert source.usable.all()
    assert not cache_root.exists()


def test_devices() -> None:
    with raises(ConfigError, "unknown-device") as caught:
        choose_device("quantum")
    assert caught.value.facts["device"] == "quantum"
    assert choose_device("auto").type in ("cpu", "cuda", "mps")
    assert choose_device("cpu") == torch.device("cpu")
