"""Token stores: what is read is what was written, and damage is noticed."""

import json
import zlib
from dataclasses import asdict

import numpy as np
import pytest
import torch

from error_codes import raises
from newkind.backbone.record_layout import RecordLayout
from newkind.backbone.token_store import TokenStore, entry_dtype
from newkind.backbone.tokens import Tokens
from newkind.errors import CacheError


def random_tokens(layout: RecordLayout, n: int, seed: int = 0) -> Tokens:
    torch.manual_seed(seed)
    n *= layout.n_views + 1
    x = torch.randn(n, layout.n_tokens, layout.dim)
    moments = torch.rand(n, layout.n_tokens, 2) + 0.5 if layout.keep_moments else None
    return Tokens(torch.nn.functional.layer_norm(x, (layout.dim,)), 9 * x[:, 0], moments)


def digest(i: int) -> bytes:
    return i.to_bytes(16, "little")


LAYOUTS = [
    RecordLayout(n_views=2, n_tokens=5, dim=8),
    RecordLayout(n_views=3, n_tokens=5, dim=7, dtype="int8"),
    RecordLayout(n_views=2, n_tokens=3, dim=8, keep_moments=True),
]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_is_read_is_what_was_written(tmp_path, layout: RecordLayout, monkeypatch) -> None:
    monkeypatch.setattr("newkind.backbone.token_store.SHARD_BYTES", 4 * layout.record_bytes)  # several shards
    tokens = random_tokens(layout, 10)
    store = TokenStore(tmp_path, layout, about={"a": 1})
    for start in range(0, 10, 3):
        rows = slice(start * (layout.n_views + 1), min(start + 3, 10) * (layout.n_views + 1))
        part = Tokens(tokens.xhat[rows], tokens.cls[rows], None if tokens.moments is None else tokens.moments[rows])
        store.append([digest(i) for i in range(start, min(start + 3, 10))], part)
    store.close()
    store = TokenStore(tmp_path, layout, about={"a": 1})
    slots, views = np.array([7, 0, 9, 7]), np.array([1, 2, 0, 0])
    read = store.read(slots, views)
    flat = slots * (layout.n_views + 1) + views
    tolerance = 1e-3 if layout.dtype == "float16" else 0.02
    torch.testing.assert_close(read.xhat, tokens.xhat[flat], atol=tolerance, rtol=tolerance)
    torch.testing.assert_close(read.cls, tokens.cls[flat], atol=0, rtol=0)
    if tokens.moments is not None:
        torch.testing.assert_close(read.moments, tokens.moments[flat], atol=0, rtol=0)
    assert store.slot_of(digest(4)) == 4
    assert store.slot_of(digest(40)) is None
    assert store.damaged() == []


def test_several_processes_write_to_one_store(tmp_path, monkeypatch) -> None:
    """Each writes to its own part at the same time as the others, and reads all of them."""
    layout = LAYOUTS[0]
    monkeypatch.setattr("newkind.backbone.token_store.SHARD_BYTES", 2 * layout.record_bytes)
    tokens = {i: random_tokens(layout, 1, seed=i) for i in range(12)}
    writers = [TokenStore(tmp_path, layout, about={}, part=part) for part in (0, 2, 7)]
    for i, content in tokens.items():
        writers[i % 3].append([digest(i)], content)
    assert [len(writer) for writer in writers] == [4, 4, 4]  # those that it knew when it was opened, and its own
    (tmp_path / "index-other.bin").touch()
    for part in (0, 2, 5):
        store = TokenStore(tmp_path, layout, about={}, part=part)
        assert len(store) == 12
        slots = np.array([store.slot_of(digest(i)) for i in tokens])
        read = store.read(slots, np.full(12, 1))
        torch.testing.assert_close(read.cls, torch.stack([tokens[i].cls[1] for i in tokens]), atol=0, rtol=0)
        assert store.damaged() == []
    store.append([digest(99)], tokens[0])  # a new part after all others
    assert store.slot_of(digest(99)) == 12
    torch.testing.assert_close(store.read(np.array([12]), np.array([2])).cls, tokens[0].cls[2:], atol=0, rtol=0)
    files = {path.name for path in tmp_path.glob("*.bin")}
    assert {"index.bin", "index-00002.bin", "tokens-00001.bin", "tokens-00002-00001.bin", "index-00005.bin"} <= files


ENTRY = entry_dtype(LAYOUTS[0].n_views + 1)


def filled(folder, n: int = 6) -> TokenStore:
    store = TokenStore(folder, LAYOUTS[0], about={})
    store.append([digest(i) for i in range(n)], random_tokens(LAYOUTS[0], n))
    store.close()
    return store


@pytest.mark.parametrize(("n_entries", "n_complete"), [(6, 6), (5, 4), (4, 4), (3, 0), (0, 0)])
def test_an_incomplete_group_is_ignored_and_overwritten(tmp_path, n_entries: int, n_complete: int) -> None:
    """Groups of four and two images: those of one group are computed together, or not at all."""
    tokens = random_tokens(LAYOUTS[0], 6)
    per_image = len(tokens.cls) // 6

    def append(store: TokenStore, first: int, last: int) -> None:
        some = slice(first * per_image, last * per_image)
        store.append([digest(i) for i in range(first, last)], Tokens(tokens.xhat[some], tokens.cls[some]))

    store = TokenStore(tmp_path, LAYOUTS[0], about={})
    append(store, 0, 4)
    append(store, 4, 6)
    store.close()
    whole = (tmp_path / "index.bin").read_bytes()
    (tmp_path / "index.bin").write_bytes(whole[: n_entries * ENTRY.itemsize + 11])
    store = TokenStore(tmp_path, LAYOUTS[0], about={})
    assert len(store) == n_complete
    for first, last in ((0, 4), (4, 6)):
        if first >= n_complete:
            append(store, first, last)
    store.close()
    assert (tmp_path / "index.bin").read_bytes()[: 6 * ENTRY.itemsize] == whole
    assert len(TokenStore(tmp_path, LAYOUTS[0], about={})) == 6


def test_a_gap_in_the_index_is_damage(tmp_path) -> None:
    filled(tmp_path)
    index = bytearray((tmp_path / "index.bin").read_bytes())
    index[2 * ENTRY.itemsize] ^= 1
    (tmp_path / "index.bin").write_bytes(index)
    with raises(CacheError, "damaged") as caught:
        TokenStore(tmp_path, LAYOUTS[0], about={})
    assert caught.value.facts["record"] == 2


def test_a_truncated_shard_is_noticed(tmp_path) -> None:
    filled(tmp_path)
    shard = tmp_path / "tokens-00000.bin"
    shard.write_bytes(shard.read_bytes()[:-1])
    with raises(CacheError, "damaged"):
        TokenStore(tmp_path, LAYOUTS[0], about={})
    shard.unlink()
    with raises(CacheError, "damaged"):
        TokenStore(tmp_path, LAYOUTS[0], about={})


def test_changed_bytes_are_found(tmp_path) -> None:
    filled(tmp_path)
    flip(tmp_path, LAYOUTS[0].record_bytes * 3 + 5)
    assert TokenStore(tmp_path, LAYOUTS[0], about={}).damaged() == [3]


def flip(folder, at: int) -> None:
    """Change one byte of the first shard."""
    content = bytearray((folder / "tokens-00000.bin").read_bytes())
    content[at] ^= 255
    (folder / "tokens-00000.bin").write_bytes(content)


def test_a_damaged_view_is_not_read(tmp_path) -> None:
    filled(tmp_path)
    layout = LAYOUTS[0]
    flip(tmp_path, layout.record_bytes * 3 + layout.view_dtype().itemsize + 5)
    store = TokenStore(tmp_path, layout, about={})
    store.read(np.array([3, 2]), np.array([0, 1]))  # the other views are sound
    for _ in range(2):
        with raises(CacheError, "damaged") as caught:
            store.read(np.array([2, 3]), np.array([1, 1]))
        assert caught.value.facts["record"] == 3


@pytest.mark.parametrize("layout", [LAYOUTS[0], RecordLayout(n_views=0, n_tokens=0, dim=8, dtype="float32")])
def test_a_store_of_format_1_has_one_checksum_per_record_and_is_continued(tmp_path, layout: RecordLayout) -> None:
    meta = {"format": 1, "layout": asdict(layout), "about": {}}
    del meta["layout"]["keep_sizes"]  # a field that is newer than the format
    (tmp_path / "meta.json").write_text(json.dumps(meta))
    (tmp_path / "index.bin").touch()
    store = TokenStore(tmp_path, layout, about={})
    store.append([digest(i) for i in range(3)], some_tokens(layout, 3))
    store.close()
    index = np.fromfile(tmp_path / "index.bin", dtype=entry_dtype(1))
    records = (tmp_path / "tokens-00000.bin").read_bytes()
    size = layout.record_bytes
    assert index["crc"].ravel().tolist() == [zlib.crc32(records[i * size : (i + 1) * size]) for i in range(3)]
    flip(tmp_path, size + 1)
    store = TokenStore(tmp_path, layout, about={})
    store.read(np.array([0, 2]), np.array([0, layout.n_views]))
    with raises(CacheError, "damaged"):
        store.read(np.array([1]), np.array([layout.n_views]))  # another view of the record, but it is not known which
    assert store.damaged() == [1]


def some_tokens(layout: RecordLayout, n: int) -> Tokens:
    return random_tokens(layout, n) if layout.n_tokens else Tokens.of_features(torch.randn(n, layout.dim))


def test_a_foreign_store_is_refused(tmp_path) -> None:
    filled(tmp_path)
    with raises(CacheError, "other-tokens"):
        TokenStore(tmp_path, LAYOUTS[0], about={"weights": "other"})
    with raises(CacheError, "other-tokens"):
        TokenStore(tmp_path, LAYOUTS[2], about={})
    (tmp_path / "meta.json").write_text("{not json")
    with raises(CacheError, "damaged"):
        TokenStore(tmp_path, LAYOUTS[0], about={})


def test_bad_layouts() -> None:
    with raises(CacheError, "out-of-range") as caught:
        RecordLayout(n_views=1, n_tokens=2, dim=2)
    assert caught.value.facts["setting"] == "views"
    with raises(CacheError, "unknown-choice"):
        RecordLayout(n_views=2, n_tokens=2, dim=2, dtype="float64")
