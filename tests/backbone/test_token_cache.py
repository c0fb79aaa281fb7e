"""The cache builder: what it holds, what it computes again, and what survives kill -9."""

import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from newkind.backbone import cache as cache_module
from newkind.backbone.cache_folders import list_caches, remove_cache
from newkind.backbone.loader import Prepared, choose_device, prepare_cache
from newkind.backbone.online import OnlineTokens
from newkind.backbone.token_cache import CacheKey, TokenCache, build_cache, image_views, plan_cache
from newkind.config import BackboneConfig
from newkind.data import Collection, from_features, read_folder
from newkind.data.views import ViewRecipe
from newkind.errors import BackboneError, CacheError, DataError
from newkind.progress import quiet


def build(collection: Collection, key: CacheKey, prepared: Prepared, root: Path) -> TokenCache:
    plan = plan_cache(collection, key, prepared.trunk, root=root)
    return build_cache(collection, plan, prepared.trunk, advance=quiet)


def contents(folder: Path) -> dict[str, str]:
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.iterdir() if p.name != "lock"}


def test_cached_tokens_are_the_trunks(collection, key, prepared, tmp_path) -> None:
    cache = build(collection, key, prepared, tmp_path)
    images = collection.catalog.items
    digests = plan_cache(collection, key, prepared.trunk, root=tmp_path).digests
    batch = np.array([4, 0, 20])
    (evaluated,) = cache.evaluation_batches(iter([batch]))
    views = torch.cat([image_views(images, i, key, digests[i])[:1] for i in batch])
    expected = prepared.trunk(views)
    torch.testing.assert_close(evaluated.xhat, expected.xhat, atol=2e-3, rtol=1e-3)
    torch.testing.assert_close(evaluated.cls, expected.cls, atol=1e-5, rtol=1e-5)
    feature, reference = prepared.tuned(evaluated).detach(), prepared.tuned(expected).detach()
    assert (feature - reference).norm() / reference.norm() < 1e-3  # what half precision costs


def test_training_batches_draw_different_views_of_each_image(collection, key, prepared, tmp_path) -> None:
    cache = build(collection, key, prepared, tmp_path)
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


def test_all_views_are_drawn_equally_often(collection, key, prepared, tmp_path) -> None:
    cache = build(collection, key, prepared, tmp_path)
    batch = np.zeros(300, dtype=np.int64)
    (tokens,) = cache.training_batches(iter([batch]), n_views=2, seed=(0, 0))
    views = cache.store.read(np.full(3, cache.slots[0]), np.array([1, 2, 3])).cls
    counts = [(tokens.cls == view).all(dim=1).sum().item() for view in views]
    assert sum(counts) == 600
    assert min(counts) > 150


def test_one_changed_image_is_computed_again_and_nothing_else(
    collection, photographs, key, prepared, tmp_path, make_image
) -> None:
    first = build(collection, key, prepared, tmp_path)
    before = contents(first.store.folder)["tokens-00000.bin"]
    size = (first.store.folder / "tokens-00000.bin").stat().st_size
    make_image(photographs / "a" / "03.png", seed=999)
    plan = plan_cache(read_folder(photographs), key, prepared.trunk, root=tmp_path)
    changed = list(collection.catalog.items.names).index("a/03.png")
    assert plan.todo == [changed]
    second = build_cache(read_folder(photographs), plan, prepared.trunk, advance=quiet)
    kept = np.arange(21) != changed
    assert np.array_equal(first.slots[kept], second.slots[kept])
    assert second.slots[changed] == 21
    content = (second.store.folder / "tokens-00000.bin").read_bytes()
    assert hashlib.sha256(content[:size]).hexdigest() == before


def test_copies_share_a_record_and_broken_images_are_skipped(photographs, key, prepared, tmp_path) -> None:
    (photographs / "a" / "copy.png").write_bytes((photographs / "a" / "01.png").read_bytes())
    (photographs / "a" / "bad.png").write_text("no picture")
    collection = read_folder(photographs)
    cache = build(collection, key, prepared, tmp_path)
    names = list(collection.catalog.items.names)
    assert cache.slots[names.index("a/copy.png")] == cache.slots[names.index("a/01.png")]
    assert [item.name for item in cache.skipped] == ["a/bad.png"]
    assert cache.usable.sum() == 22
    assert len(cache.store) == 21


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
    other = CacheKey(**({name: getattr(key, name) for name in key.__dataclass_fields__} | change))
    assert other.folder("x") != key.folder("x")
    assert key.folder("x") == key.folder("x")
    assert key.folder("y") != key.folder("x")


def test_a_full_disk_takes_fewer_views_and_then_none(collection, key, prepared, tmp_path, monkeypatch) -> None:
    wanted = plan_cache(collection, key, prepared.trunk, root=tmp_path)
    room = cache_module.SPARE_BYTES + wanted.bytes_todo - 1
    usage = type("Usage", (), {"free": room})
    monkeypatch.setattr(cache_module.shutil, "disk_usage", lambda _: usage)
    assert plan_cache(collection, key, prepared.trunk, root=tmp_path).layout.n_views == 2
    usage.free = 1000
    plan = plan_cache(collection, key, prepared.trunk, root=tmp_path)
    with pytest.raises(CacheError, match="GB free"):
        build_cache(collection, plan, prepared.trunk, advance=quiet)
    assert not plan.folder.exists()


BUILDER = """
import sys
from pathlib import Path
from newkind.backbone.loader import prepare_cache, prepare_trunk
from newkind.config import BackboneConfig
from newkind.data import read_folder
config = BackboneConfig(name="vit_tiny_patch16_224", random_weights=True, image_size=32, views=3, device="cpu")
prepare_cache(read_folder(Path(sys.argv[1])), config, prepare_trunk(config), root=Path(sys.argv[2]))
"""


def test_kill_dash_nine_at_any_moment_leaves_the_same_bytes(photographs, tmp_path, monkeypatch) -> None:
    def start(root: Path) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", BUILDER, str(photographs), str(root)]
        return subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )

    def folder(root: Path) -> Path:
        return next(p for p in root.iterdir() if p.is_dir())

    for i in range(100):  # enough images that a build takes a moment
        source = photographs / "a" / "01.png"
        (photographs / "a" / f"more{i}.png").write_bytes(source.read_bytes() + bytes([i]))
    whole = start(tmp_path / "whole")
    assert whole.wait() == 0, whole.stderr.read()
    killed = 0
    torn = tmp_path / "torn"
    for records in (1, 30, 60):  # killed when at least so many records are there
        process = start(torn)
        while process.poll() is None:
            index = list(torn.glob("*/index.bin"))
            if index and index[0].stat().st_size >= records * 24:
                process.send_signal(signal.SIGKILL)
                break
            time.sleep(0.002)
        killed += process.wait() == -signal.SIGKILL
        process.stderr.close()
    assert killed >= 2
    last = start(torn)
    assert last.wait() == 0, last.stderr.read()
    assert contents(folder(torn)) == contents(folder(tmp_path / "whole"))
    whole.stderr.close()
    last.stderr.close()


def test_two_builders_do_not_mix(collection, key, prepared, tmp_path) -> None:
    from filelock import FileLock

    plan = plan_cache(collection, key, prepared.trunk, root=tmp_path)
    plan.folder.mkdir(parents=True)
    with FileLock(plan.folder / "lock"), pytest.raises(CacheError, match="Another process"):
        build_cache(collection, plan, prepared.trunk, advance=quiet)


def test_online_sees_the_same_evaluation_view_as_the_cache(collection, key, prepared, tmp_path) -> None:
    cache = build(collection, key, prepared, tmp_path)
    online = OnlineTokens(collection.catalog.items, prepared.trunk, key.recipe)
    batch = np.array([2, 9, 11, 0])
    (a,), (b,) = cache.evaluation_batches(iter([batch])), online.evaluation_batches(iter([batch]))
    torch.testing.assert_close(a.xhat, b.xhat, atol=2e-3, rtol=1e-3)
    torch.testing.assert_close(a.cls, b.cls, atol=1e-5, rtol=1e-5)


def test_online_views_are_fresh_every_epoch_and_repeatable(collection, key, prepared) -> None:
    online = OnlineTokens(collection.catalog.items, prepared.trunk, key.recipe)
    batches = [np.array([2, 9, 11]), np.array([1, 4])]
    first = list(online.training_batches(iter(batches), n_views=2, seed=(0, 0)))
    again = list(online.training_batches(iter(batches), n_views=2, seed=(0, 0)))
    later = list(online.training_batches(iter(batches), n_views=2, seed=(0, 1)))
    assert [len(tokens) for tokens in first] == [6, 4]
    assert all(torch.equal(a.xhat, b.xhat) for a, b in zip(first, again, strict=True))
    assert not torch.equal(first[0].xhat, later[0].xhat)


def test_online_sets_broken_images_aside(photographs, prepared, key) -> None:
    (photographs / "a" / "bad.png").write_text("no picture")
    online = OnlineTokens(read_folder(photographs).catalog.items, prepared.trunk, key.recipe)
    assert [item.name for item in online.skipped] == ["a/bad.png"]
    assert online.usable.sum() == 21


def test_prepare_cache_says_what_it_takes(collection, prepared, tmp_path) -> None:
    config = BackboneConfig(name="vit_tiny_patch16_224", random_weights=True, image_size=32, views=3)
    said: list[str] = []
    assert prepare_cache(collection, config, prepared, dry_run=True, root=tmp_path) is None
    assert "21 images x (3 + 1) views = 84 views" in said[0]
    assert "GB" in said[0]
    prepare_cache(collection, config, prepared, root=tmp_path)
    prepare_cache(collection, config, prepared, root=tmp_path)
    assert said[-1].startswith("All 21 images have their tokens already")


def test_shelf(collection, key, prepared, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("NEWKIND_CACHE", str(tmp_path / "cache"))
    assert list_caches() == []
    plan = plan_cache(collection, key, prepared.trunk)
    build_cache(collection, plan, prepared.trunk, advance=quiet)
    (tmp_path / "cache" / "tokens" / "foreign").mkdir()
    foreign, ours = sorted(list_caches(), key=lambda c: c.readable)
    assert not foreign.readable
    assert (ours.n_images, ours.n_views, ours.backbone) == (21, 3, "vit_tiny_patch16_224")
    remove_cache(ours.folder.name)
    remove_cache("foreign")
    assert list_caches() == []
    with pytest.raises(CacheError, match="no token cache called nothing"):
        remove_cache("nothing")


def test_features_and_unknown_devices_are_refused(key, prepared) -> None:
    with pytest.raises(DataError, match="need no backbone"):
        plan_cache(from_features(np.eye(3), [0, 1, -1]), key, prepared.trunk)
    with pytest.raises(BackboneError, match="cannot be used"):
        choose_device("quantum")
    assert choose_device("auto").type in ("cpu", "cuda", "mps")


def test_two_plans_made_at_once_do_not_write_twice(collection, key, prepared, tmp_path) -> None:
    first = plan_cache(collection, key, prepared.trunk, root=tmp_path)
    second = plan_cache(collection, key, prepared.trunk, root=tmp_path)
    build_cache(collection, first, prepared.trunk, advance=quiet)
    cache = build_cache(collection, second, prepared.trunk, advance=quiet)
    assert len(cache.store) == 21
    assert len(cache.content_hash()) == 32


def test_a_complete_cache_needs_no_disk_and_no_lock(collection, key, prepared, tmp_path, monkeypatch) -> None:
    from filelock import FileLock

    build(collection, key, prepared, tmp_path)
    monkeypatch.setattr(cache_module.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 1000}))
    plan = plan_cache(collection, key, prepared.trunk, root=tmp_path)
    with FileLock(plan.folder / "lock"):
        assert build_cache(collection, plan, prepared.trunk, advance=quiet).usable.all()


def test_more_shards_than_may_be_open(collection, key, prepared, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("newkind.backbone.token_store.SHARD_BYTES", 1)
    monkeypatch.setattr("newkind.backbone.token_store.OPEN_SHARDS", 3)
    cache = build(collection, key, prepared, tmp_path)
    assert len(list(cache.store.folder.glob("tokens-*.bin"))) == 21
    (tokens,) = cache.evaluation_batches(iter([np.arange(21)]))
    assert len(tokens) == 21
    assert cache.store.damaged() == []
