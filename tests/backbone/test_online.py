"""Online tokens: same evaluation views as the cache, new random views per epoch, each image decoded once per pass."""

from collections import Counter

import numpy as np
import pytest
import torch

from newkind.backbone.cache_builder import build_cache
from newkind.backbone.cache_plan import CacheKey, plan_cache
from newkind.backbone.division import divide
from newkind.backbone.loader import Backbone
from newkind.backbone.online import OnlineTokens
from newkind.data import Collection, from_arrays
from newkind.errors import BrokenImage
from newkind.progress import quiet


@pytest.fixture
def online(collection: Collection, backbone: Backbone, key: CacheKey) -> OnlineTokens:
    return OnlineTokens(collection.catalog.items, backbone.trunk, key.recipe)


@pytest.fixture
def damaged(damaged_collection: Collection, backbone: Backbone, key: CacheKey) -> OnlineTokens:
    return OnlineTokens(damaged_collection.catalog.items, backbone.trunk, key.recipe)


def test_online_has_the_same_evaluation_views_as_the_cache(collection, key, backbone, online) -> None:
    cache = build_cache(
        collection,
        divide(collection, [plan_cache(collection, key, backbone.trunk)]),
        backbone.trunk,
        advance=quiet,
    )
    batch = np.array([2, 9, 11, 0])
    (a,), (b,) = cache.evaluation_batches(iter([batch])), online.evaluation_batches(iter([batch]))
    assert a.rows.tolist() == b.rows.tolist() == [0, 1, 2, 3]
    torch.testing.assert_close(a.tokens.xhat, b.tokens.xhat, atol=2e-3, rtol=1e-3)
    torch.testing.assert_close(a.tokens.cls, b.tokens.cls, atol=1e-5, rtol=1e-5)


def test_random_views_are_new_in_every_epoch_and_repeatable(online) -> None:
    batches = [np.array([2, 9, 11]), np.array([1, 4])]
    first = list(online.training_batches(iter(batches), n_views=2, seed=(0, 0)))
    again = list(online.training_batches(iter(batches), n_views=2, seed=(0, 0)))
    later = list(online.training_batches(iter(batches), n_views=2, seed=(0, 1)))
    assert [len(tokens) for tokens in first] == [6, 4]
    assert all(torch.equal(a.xhat, b.xhat) for a, b in zip(first, again, strict=True))
    assert not torch.equal(first[0].xhat, later[0].xhat)


def test_a_part_of_the_rows_has_the_views_of_the_whole_batch(online) -> None:
    batch = np.array([2, 9, 11, 5])
    (whole,) = online.training_batches(iter([batch]), n_views=2, seed=(0, 0))
    (part,) = online.training_batches(iter([batch]), n_views=2, seed=(0, 0), rows=slice(2, 4))
    torch.testing.assert_close(part.cls, whole.cls[[2, 3, 6, 7]], atol=1e-5, rtol=1e-5)


def test_a_single_pass_reads_every_image_once(damaged, reads: Counter[str]) -> None:
    n_images = len(damaged.images)
    batches = [np.arange(i, min(i + 8, n_images)) for i in range(0, n_images, 8)]
    found = np.concatenate(
        [batch[rows] for batch, (rows, _) in zip(batches, damaged.evaluation_batches(iter(batches)), strict=True)]
    )
    assert found.tolist() == np.flatnonzero(damaged.usable).tolist()
    assert len(found) == 21
    assert [item.name for item in damaged.skipped] == ["a/bad.png"]
    assert set(reads.values()) == {1}
    assert len(reads) == n_images


def test_a_batch_without_a_readable_image_is_empty(damaged, backbone) -> None:
    bad = list(damaged.images.names).index("a/bad.png")
    empty, full = damaged.evaluation_batches(iter([np.array([bad]), np.array([0, bad, 3])]))
    assert len(empty.rows) == len(empty.tokens) == 0
    assert backbone.tuned(empty.tokens).shape == (0, backbone.trunk.dim)
    assert full.rows.tolist() == [0, 2]
    assert len(full.tokens) == 2


def test_unusable_images_are_found_before_training_with_one_read_per_image(damaged, reads, caplog) -> None:
    assert damaged.usable.sum() == 21
    assert [item.name for item in damaged.skipped] == ["a/bad.png"]
    damaged.content_hash()
    assert set(reads.values()) == {1}
    assert "bad.png" in caplog.text


def test_the_content_hash_does_not_depend_on_what_was_decoded_before(damaged_collection, backbone, key) -> None:
    checked, passed = (OnlineTokens(damaged_collection.catalog.items, backbone.trunk, key.recipe) for _ in range(2))
    list(passed.evaluation_batches(iter([np.arange(22)])))
    assert checked.content_hash() == passed.content_hash()


def test_training_on_an_unusable_image_is_an_error(damaged) -> None:
    bad = list(damaged.images.names).index("a/bad.png")
    with pytest.raises(BrokenImage):
        list(damaged.training_batches(iter([np.array([0, bad])]), n_views=2, seed=(0, 0)))


def test_images_in_memory(backbone, key) -> None:
    pixels = np.random.default_rng(0).integers(0, 255, (5, 40, 40, 3), dtype=np.uint8)
    source = OnlineTokens(from_arrays(pixels, [0, 1, 0, -1, -1]).catalog.items, backbone.trunk, key.recipe)
    assert source.usable.all()
    assert source.n_views is None
    (found,) = source.evaluation_batches(iter([np.arange(5)]))
    assert len(found.tokens) == 5
