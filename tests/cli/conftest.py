"""The command line as a user runs it, in a process of its own."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from feature_clusters import feature_clusters

Newkind = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return os.environ | {"COLUMNS": "300", "NEWKIND_CACHE": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"}


@pytest.fixture
def newkind(environment: dict[str, str]) -> Newkind:
    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "newkind", *map(os.fspath, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=300)

    return run


@pytest.fixture
def fails(newkind: Newkind) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a command that must end with one error of this code, exit code 2 and no traceback."""

    def run(code: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        done = newkind(*arguments)
        assert done.returncode == 2, done.stdout + done.stderr
        assert f"[{code}]" in done.stderr, done.stderr
        assert "Traceback" not in done.stderr
        return done

    return run


@pytest.fixture
def features(tmp_path: Path) -> Path:
    """Ten clouds in 16-d; five are known, with half of their samples labelled."""
    path = tmp_path / "clouds.npz"
    np.savez(path, **feature_clusters(10, 5, n_each=20, dim=16))
    return path


@pytest.fixture
def shapes(tmp_path: Path) -> Path:
    """Four kinds of pictures that differ by colour; two are known. A table has labels and truth."""
    root = tmp_path / "shapes"
    (root / "img").mkdir(parents=True)
    rng = np.random.default_rng(0)
    colours = {"red": (200, 30, 30), "green": (30, 200, 30), "blue": (30, 30, 200), "grey": (120, 120, 120)}
    rows = ["file_name,label,truth"]
    for kind, colour in colours.items():
        for i in range(16):
            pixels = np.array(colour) + rng.integers(-25, 25, (40, 44, 3))
            Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(root / "img" / f"{kind}{i:02d}.png")
            rows.append(f"img/{kind}{i:02d}.png,{kind if kind in ('red', 'green') and i % 2 else ''},{kind}")
    (root / "metadata.csv").write_text("\n".join(rows) + "\n")
    return root
