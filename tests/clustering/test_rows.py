"""Rows come out the same from a tensor, an array or a memory map, whole or in pieces, and a map's memory is given back."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from error_codes import raises
from newkind.clustering import rows as module
from newkind.clustering.rows import centred_rows
from newkind.errors import DataError

CPU = torch.device("cpu")


def sample(n: int = 100, dim: int = 6) -> np.ndarray:
    return (3 + np.random.default_rng(0).normal(size=(n, dim))).astype(np.float32)


def streamed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HOLD_BYTES", 0)
    monkeypatch.setattr(module, "CHUNK_CELLS", 7 * 6)


def mapped(path: Path, x: np.ndarray, mode: str = "r") -> np.ndarray:
    np.save(path, x)
    return np.load(path, mmap_mode=mode)


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32"])
@pytest.mark.parametrize("kind", ["array", "tensor", "map"])
def test_all_sources_give_the_same_rows(kind: str, dtype: str, held: bool, tmp_path: Path, monkeypatch) -> None:
    if not held:
        streamed(monkeypatch)
    x = (10 * sample()).astype(dtype)
    source = {"array": lambda: x, "tensor": lambda: torch.from_numpy(x), "map": lambda: mapped(tmp_path / "x.npy", x)}
    rows = centred_rows(source[kind](), CPU)
    expected = x.astype(np.float64) - x.astype(np.float64).mean(axis=0)
    assert (rows.held is not None) == held
    pieces = list(rows.chunks(1))
    assert len(pieces) == (1 if held else 15)
    got = torch.cat([part for _, part in pieces])
    assert got.dtype == torch.float32
    np.testing.assert_allclose(got, expected, atol=1e-4)
    np.testing.assert_allclose(rows.squares, (expected**2).sum(axis=1), rtol=1e-4)
    np.testing.assert_allclose(rows.take(torch.tensor([99, 3])), expected[[99, 3]], atol=1e-4)


@pytest.mark.parametrize("held", [True, False])
def test_subsets(held: bool, monkeypatch) -> None:
    if not held:
        streamed(monkeypatch)
    rows = centred_rows(sample(), CPU)
    whole = torch.cat([x for _, x in rows.chunks(1)])
    which = torch.tensor([0, 1, 30, 31, 32, 98])
    part = rows.subset(which)
    for again in (part, part.subset(torch.arange(6))):
        assert len(again) == 6
        seen = torch.full((6, 6), torch.nan)
        for piece, x in again.chunks(1):
            seen[piece] = x
        assert torch.equal(seen, whole[which])
        assert torch.equal(again.squares, rows.squares[which])
    assert torch.equal(part.subset(torch.tensor([2, 5])).values(), whole[which[[2, 5]]])
    assert torch.equal(part.take(torch.tensor([5, 2])), whole[which[[5, 2]]])
    none = rows.subset(torch.arange(0))
    assert len(none) == 0
    assert none.values().shape == (0, 6)
    assert none.squares.shape == (0,)


def test_a_far_off_mean_costs_no_accuracy() -> None:
    x = 1e4 + sample().astype(np.float64)
    near = centred_rows(x.astype(np.float32), CPU).values().numpy()
    exact = x.astype(np.float32).astype(np.float64)
    np.testing.assert_allclose(near - near[0], exact - exact[0], atol=1e-6)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("view", [False, True])
def test_a_maps_pages_are_given_back(view: bool, tmp_path: Path, monkeypatch) -> None:
    x = mapped(tmp_path / "large.npy", np.ones((2000, 1024), dtype=np.float32))
    monkeypatch.setattr(module, "HOLD_BYTES", 0)
    monkeypatch.setattr(module, "CHUNK_CELLS", 2**15)
    rows = centred_rows(np.asarray(x)[:] if view else x, CPU)
    assert resident("large.npy") < 1000
    for piece, _ in rows.chunks(1):
        assert piece.start % 512 or resident("large.npy") < 1000
    assert float(x.sum()) == 2000 * 1024  # 8000 kB, all of them needed at once
    assert resident("large.npy") > 7000


def resident(name: str) -> int:
    """kB of a mapped file that are in this process's memory."""
    lines = Path("/proc/self/smaps").read_text().splitlines()
    starts = [i for i, line in enumerate(lines) if line.endswith(name)]
    return sum(int(next(line for line in lines[i:] if line.startswith("Rss:")).split()[1]) for i in starts)


def test_unsaved_changes_to_a_map_are_kept(tmp_path: Path, monkeypatch) -> None:
    streamed(monkeypatch)
    x = mapped(tmp_path / "x.npy", sample(), mode="c")
    x[:] = 5
    centred_rows(x, CPU)
    assert (x == 5).all()


@pytest.mark.parametrize(
    ("x", "code", "facts"),
    [
        (np.zeros(5), "features-shape", {"shape": (5,)}),
        (np.zeros((0, 3)), "features-shape", {"shape": (0, 3)}),
        (np.zeros((3, 0)), "features-shape", {"shape": (3, 0)}),
        (np.array([["a", "b"]]), "features-dtype", {}),
        (np.ones((2, 2), dtype=complex), "features-dtype", {"dtype": "complex128"}),
        (np.array([[1, 2], [np.nan, 1]]), "features-not-finite", {"row": 1}),
        (np.array([[1, 2], [3, 1], [np.inf, -np.inf]]), "features-not-finite", {"row": 2}),
        (torch.tensor([[1.0], [-torch.inf]]), "features-not-finite", {"row": 1}),
        (np.array([[1, 2], [1e200, 1]]), "feature-scale", {}),
        (torch.tensor([[1e20, -1e20]]), "feature-scale", {}),
    ],
)
def test_bad_features(x, code: str, facts: dict) -> None:
    with raises(DataError, code) as caught:
        centred_rows(x, CPU)
    assert caught.value.facts.items() >= facts.items()
