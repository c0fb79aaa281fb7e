"""Shared test data: small real image files, made on the spot; and a browser."""

import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

from newkind.paths import cache_dir

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# Some virtual machines advertise AMX and then end a process that uses it; must be set before torch is imported.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

os.environ.setdefault("NEWKIND_USER_WEIGHTS", str(cache_dir("weights")))  # processes of xdist inherit it
CACHE = tempfile.mkdtemp(prefix="newkind-tests-")
"""Cache of the tests, so that they neither read nor fill the user's. Processes that tests start inherit it."""
os.environ["NEWKIND_CACHE"] = CACHE

# A shell without job control lets processes in the background ignore Ctrl-C, and those that they start, too.
signal.signal(signal.SIGINT, signal.default_int_handler)

MakeImage = Callable[..., Path]


def pytest_unconfigure() -> None:
    shutil.rmtree(CACHE, ignore_errors=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that start processes come first: what is short fills the gaps at the end of a parallel run."""
    items.sort(key=lambda item: "cli" not in item.path.parts)


@pytest.fixture
def make_image() -> MakeImage:
    """Writes a picture whose content depends on `seed`; the suffix decides the format."""

    def make(path: Path, *, seed: int = 0, size: tuple[int, int] = (24, 16)) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(seed).integers(0, 255, (size[1], size[0], 3), dtype=np.uint8)
        Image.fromarray(pixels).save(path)
        return path

    return make


@pytest.fixture
def pile(tmp_path: Path, make_image: MakeImage) -> Path:
    """Two known classes with three images each, two unlabelled images in a folder and one loose."""
    root = tmp_path / "pile"
    for i in range(3):
        make_image(root / "apple" / f"{i}.jpg", seed=i)
        make_image(root / "pear" / f"{i}.png", seed=10 + i)
    make_image(root / "unlabelled" / "u0.jpg", seed=20)
    make_image(root / "unlabelled" / "deep" / "u1.webp", seed=21)
    make_image(root / "loose.bmp", seed=22)
    return root


@pytest.fixture(scope="session")
def browser() -> Iterator["Browser"]:
    """Chromium."""
    from playwright.sync_api import sync_playwright

    from browser_visit import ARGUMENTS, find_browser

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=find_browser(), args=list(ARGUMENTS))
        yield started
        started.close()
