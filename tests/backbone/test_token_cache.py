"""The token cache: what it contains, what is computed again, and what survives kill -9."""

import hashlib
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from error_codes import raises
from newkind.backbone import cache_plan
from newkind.backbone.cache_builder import build_cache, image_views
from newkind.backbone.cache_folders import list_caches, remove_cache
from newkind.backbone.cache_plan import CacheKey, plan_cache
from newkind.backbone.division import divide
from newkind.backbone.loader import Backbone
from newkind.backbone.token_cache import TokenCache
from newkind.data import Collection, from_features, read_folder
from newkind.data.views import ViewRecipe
from newkind.errors import CacheError, DataError
from newkind.progress import quiet

TIMEOUT = 240


def build(collection: Collection, key: CacheKey, backbone: Backbone) -> TokenCache:
    plan = plan_cache(collection, key, backbone.trunk)
    return build_cache(collection, divide(collection, [plan]), backbone.trunk, advance=quiet)


def contents(folder: Path) -> dict[str, str]:
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.iterdir() if p.name != "lock"}


def test_cached_tokens_are_the_trunks(collection, key, backbone) -> None:
    cache = build(collection, key, backbone)
    images = collection.catalog.items
    digests = plan_cache(collection, key, backbone.trunk).digests
    batch = np.array([4, 0, 20])
    ((rows, evaluated),) = cache.evaluation_batches(iter([batch]))
    assert rows.tolist() == [0, 1, 2]
    views = torch.cat([image_views(images.open(i), [key], digests[i])[0][:1] for i in batch])
    expected = backbone.trunk(views)
    torch.testing.assert_close(evaluated.xhat, expected.xhat, atol=2e-3, rtol=1e-3)
    torch.testing.assert_close(evaluated.cls, expected.cls, atol=1e-5, rtol=1e-5)
    feature, reference = backbone.tuned(evaluated).detach(), backbone.tuned(expected).detach()
    assert (feature - reference).norm() / reference.norm() < 1e-3  # the error of half precision


def test_training_batches_draw_different_views_of_each_image(collection, key, backbone) -> None:
    cache = build(collection, key, backbone)
    batches = [np.array([3, 5, 3]), np.array([1, 2, 0])]
    drawn = list(cache.training_batches(iter(batches), n_views=2, seed=(7, 0)))
    again = list(cache.training_batches(iter(batches), n_views=2, seed=(7, 0)))
    other = list(cache.training_batches(iter(batches), n_views=2, seed=(7, 1)))
    assert all(torch.equal(a.xhat, b.xhat) for a, b in zip(drawn, again, strict=True))
    assert not torch.equal(drawn[0].xhat, other[0].xhat)
    first, second = drawn[0].cls[:3], drawn[0].cls[3:]
    assert (first - second).abs().amax(dim=1).min() > 0  # two different views of each
    every_view = cache.store.read(np.full(3, cache.slots[5]), np.array([1, 2, 3]))
    assert any(torch.equal(first[1], view) for view in every_view.cls)  # of that image, and never the evaluation view


def test_all_views_are_drawn_equally_often(collection, key, backbone) -> None:
    cache = build(collection, key, backbone)
    batch = np.zeros(300, dtype=np.int64)
    (tokens,) = cache.training_batches(iter([batch]), n_views=2, seed=(0, 0))
    views = cache.store.read(np.full(3, cache.slots[0]), np.array([1, 2, 3])).cls
    counts = [(tokens.cls == view).all(dim=1).sum().item() for view in views]
    assert sum(counts) == 600
    assert min(counts) > 150


def test_one_changed_image_is_computed_again_and_nothing_else(
    collection, photographs, key, backbone, make_image
) -> None:
    first = build(collection, key, backbone)
    before = contents(first.store.folder)["tokens-00000.bin"]
    size = (first.store.folder / "tokens-00000.bin").stat().st_size
    make_image(photographs / "a" / "03.png", seed=999)
    plan = plan_cache(read_folder(photographs), key, backbone.trunk)
    changed = list(collection.catalog.items.names).index("a/03.png")
    assert plan.todo == [changed]
    second = build(read_folder(photographs), key, backbone)
    kept = np.arange(21) != changed
    assert np.array_equal(first.slots[kept], second.slots[kept])
    assert second.slots[changed] == 21
    content = (second.store.folder / "tokens-00000.bin").read_bytes()
    assert hashlib.sha256(content[:size]).hexdigest() == before


def test_features_of_a_changed_file_are_not_stored_as_those_of_the_old_one(
    collection, photographs, key, backbone, make_image
) -> None:
    plan = plan_cache(collection, key, backbone.trunk)
    make_image(photographs / "a" / "03.png", seed=999)
    with raises(DataError, "changed-image") as caught:
        build_cache(collection, divide(collection, [plan]), backbone.trunk, advance=quiet)
    assert caught.value.facts["name"] == "a/03.png"


def test_copies_share_a_record_and_broken_images_are_skipped(photographs, key, backbone) -> None:
    (photographs / "a" / "copy.png").write_bytes((photographs / "a" / "01.png").read_bytes())
    (photographs / "a" / "bad.png").write_text("no image")
    collection = read_folder(photographs)
    cache = build(collection, key, backbone)
    names = list(collection.catalog.items.names)
    assert cache.slots[names.index("a/copy.png")] == cache.slots[names.index("a/01.png")]
    assert [item.name for item in cache.skipped] == ["a/bad.png"]
    assert cache.usable.sum() == 22
    assert len(cache.store) == 21
    bad = names.index("a/bad.png")
    found = list(cache.evaluation_batches(iter([np.array([0, bad, 3]), np.array([bad])])))
    assert [rows.tolist() for rows, _ in found] == [[0, 2], []]
    assert [len(tokens) for _, tokens in found] == [2, 0]


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"n_views": 4},
        {"dtype": "int8"},
        {"weights_sha256": "other"},
        {"recipe": ViewRecipe(image_size=32, mirror=0.0)},
    ],
)
def test_another_key_is_another_cache(collection, key, change) -> None:
    other = replace(key, **change)
    assert other.folder("x") != key.folder("x")
    assert key.folder("x") == key.folder("x")
    assert key.folder("y") != key.folder("x")


def test_a_full_disk_takes_fewer_views_and_then_none(collection, key, backbone, monkeypatch) -> None:
    wanted = plan_cache(collection, key, backbone.trunk)
    room = cache_plan.SPARE_BYTES + wanted.bytes_todo - 1
    usage = type("Usage", (), {"free": room})
    monkeypatch.setattr(cache_plan.shutil, "disk_usage", lambda _: usage)
    assert plan_cache(collection, key, backbone.trunk).layout.n_views == 2
    usage.free = 1000
    plan = plan_cache(collection, key, backbone.trunk)
    with raises(CacheError, "disk-space") as caught:
        build_cache(collection, divide(collection, [plan]), backbone.trunk, advance=quiet)
    assert caught.value.facts["free"] == 1000
    assert not plan.folder.exists()


BUILDER = """
import os, signal, sys
from pathlib import Path
from newkind.backbone import token_store
from newkind.backbone.loader import load_backbone
from newkind.backbone.sources import open_source
from newkind.config import BackboneConfig
from newkind.data import read_folder

steps = int(sys.argv[2])
write_all, fsync = token_store._write_all, os.fsync

def step():
    global steps
    steps -= 1
    return steps == 0

def kill():
    os.kill(os.getpid(), signal.SIGKILL)

def write_or_die(file, at, content):
    if step():
        write_all(file, at, content[: len(content) // 2])
        kill()
    write_all(file, at, content)

def fsync_or_die(number):
    if step():
        kill()
    fsync(number)

token_store._write_all, os.fsync = write_or_die, fsync_or_die
config = BackboneConfig(name="vit_tiny_patch16_224", random_weights=True, image_size=32, views=3, device="cpu")
open_source(read_folder(Path(sys.argv[1])), config, load_backbone(config))
"""


def run_builder(photographs: Path, root: Path, *, killed_at_step: int) -> int:
    """Build a cache in a process that is killed at a step, in the middle of a record or before a flush; 0 for never."""
    return subprocess.run(
        [sys.executable, "-c", BUILDER, str(photographs), str(killed_at_step)],
        check=False,
        timeout=TIMEOUT,
        env=os.environ | {"OMP_NUM_THREADS": "1", "NEWKIND_CACHE": str(root)},
    ).returncode


def test_kill_dash_nine_at_any_moment_leaves_the_same_bytes(photographs, tmp_path) -> None:
    whole, torn = tmp_path / "whole", tmp_path / "torn"
    assert run_builder(photographs, whole, killed_at_step=0) == 0
    # In the middle of the second group, between its records and their index entries, before the index is flushed.
    for killed_at_step in (16, 9, 10):
        assert run_builder(photographs, torn, killed_at_step=killed_at_step) == -signal.SIGKILL
    assert run_builder(photographs, torn, killed_at_step=0) == 0
    (first,), (second,) = (list((root / "tokens").iterdir()) for root in (whole, torn))
    assert contents(first) == contents(second)


def test_two_builders_do_not_mix(collection, key, backbone) -> None:
    from filelock import FileLock

    plan = plan_cache(collection, key, backbone.trunk)
    plan.folder.mkdir(parents=True)
    with FileLock(plan.folder / "lock"), raises(CacheError, "locked"):
        build_cache(collection, divide(collection, [plan]), backbone.trunk, advance=quiet)


def test_list_and_remove(collection, key, backbone, cache_root) -> None:
    assert list_caches() == []
    plan = plan_cache(collection, key, backbone.trunk)
    build_cache(collection, divide(collection, [plan]), backbone.trunk, advance=quiet)
    (cache_root / "foreign").mkdir()
    foreign, ours = sorted(list_caches(), key=lambda c: c.readable)
    assert not foreign.readable
    assert (ours.n_images, ours.content, ours.backbone) == (21, "tokens, 3 + 1 views", "vit_tiny_patch16_224")
    remove_cache(ours.folder.name)
    remove_cache("foreign")
    assert list_caches() == []
    with raises(CacheError, "unknown-cache") as caught:
        remove_cache("nothing")
    assert caught.value.facts == {"name": "nothing", "known": []}


def test_features_have_no_cache(key, backbone) -> None:
    with raises(DataError, "no-images"):
        plan_cache(from_features(np.eye(3), [0, 1, -1]), key, backbone.trunk)


def test_two_plans_made_at_once_do_not_write_twice(collection, key, backbone) -> None:
    first = plan_cache(collection, key, backbone.trunk)
    second = plan_cache(collection, key, backbone.trunk)
    build_cache(collection, divide(collection, [first]), backbone.trunk, advance=quiet)
    cache = build_cache(collection, divide(collection, [second]), backbone.trunk, advance=quiet)
    assert len(cache.store) == 21
    assert len(cache.content_hash()) == 32


def test_a_complete_cache_needs_no_disk_and_no_lock(collection, key, backbone, monkeypatch) -> None:
    from filelock import FileLock

    build(collection, key, backbone)
    monkeypatch.setattr(cache_plan.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 1000}))
    plan = plan_cache(collection, key, backbone.trunk)
    with FileLock(plan.folder / "lock"):
        assert build_cache(collection, divide(collection, [plan]), backbone.trunk, advance=quiet).usable.all()


def test_more_shards_than_may_be_open(collection, key, backbone, monkeypatch) -> None:
    monkeypatch.setattr("newkind.backbone.token_store.SHARD_BYTES", 1)
    monkeypatch.setattr("newkind.backbone.token_store.OPEN_SHARDS", 3)
    cache = build(collection, key, backbone)
    assert len(list(cache.store.folder.glob("tokens-*.bin"))) == 21
    (found,) = cache.evaluation_batches(iter([np.arange(21)]))
    assert len(found.tokens) == 21
    assert cache.store.damaged() == []
