"""Folders of small pictures that differ by colour, and a run of them."""

from pathlib import Path

import numpy as np
from PIL import Image

import newkind
from newkind.discovery import Discovery

COLOURS = {
    "red": (200, 30, 30),
    "green": (30, 200, 30),
    "blue": (30, 30, 200),
    "grey": (120, 120, 120),
    "yellow": (220, 220, 20),
}
SMALL = {"backbone": "vit_tiny_patch16_224", "random_weights": True, "image_size": 32, "device": "cpu"}


def paint(path: Path, colour: str, seed: int) -> Path:
    """A picture of this colour with noise."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.array(COLOURS[colour]) + np.random.default_rng(seed).integers(-25, 25, (40, 44, 3))
    Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(path)
    return path


def make_data(root: Path, n_each: int = 12) -> Path:
    """Four colours; red and green are known, with half of their pictures labelled."""
    for k, colour in enumerate(("red", "green", "blue", "grey")):
        for i in range(n_each):
            folder = colour if k < 2 and i % 2 else "unlabelled"
            paint(root / folder / f"{colour}{i:02d}.png", colour, 100 * k + i)
    return root


def make_more(root: Path, n_yellow: int = 12, n_each: int = 2) -> Path:
    """Pictures of the next month: a few of each colour, and many of a new one."""
    for k, colour in enumerate(COLOURS):
        for i in range(n_yellow if colour == "yellow" else n_each):
            paint(root / f"day{i}" / f"{colour}.png", colour, 1000 + 100 * k + i)
    return root


def make_run(data: Path, out: Path) -> Discovery:
    """A run with two new categories."""
    return newkind.discover(data, out, n_categories=4, effort="quick", report=False, **SMALL)
