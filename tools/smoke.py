"""A short use of an installed Newkind, in the current folder: commands and Python, on drawn pictures with random weights."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
from PIL import Image

import newkind

SMALL = ["--backbone", "vit_tiny_patch16_224", "--random-weights", "--image-size", "32", "--device", "cpu"]
COLOURS = {"red": (200, 30, 30), "green": (30, 200, 30), "unlabelled": (30, 30, 200)}


def main() -> None:
    """Stop with an error if something does not work."""
    home = Path(newkind.__file__)
    assert home.is_relative_to(sys.prefix), f"Newkind is used from {home}, not from the new environment."
    command("--version")
    command("--help")
    command("bench", "list")
    command("demo", "--dry-run")
    draw(Path("pictures"))
    command("discover", "pictures", "--out", "run", "--n-categories", "3", "--effort", "quick", *SMALL)
    assert Path("run/report.html").stat().st_size > 10_000
    command("predict", "run", "pictures/red/0.png", "--out", "predictions.csv", "--device", "cpu")
    command("sort", "run", "--to", "sorted", "--mode", "copy")
    use_python()


def command(*words: str) -> None:
    """Run the installed command."""
    program = Path(sys.executable).with_name("newkind")
    done = subprocess.run([program, *words], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, f"newkind {' '.join(words)}: {done.stdout[-2000:]}{done.stderr[-2000:]}"


def draw(folder: Path) -> None:
    """Six pictures of each colour."""
    rng = np.random.default_rng(0)
    for name, colour in COLOURS.items():
        (folder / name).mkdir(parents=True)
        for i in range(6):
            noise = rng.integers(-20, 20, (48, 48, 3))
            Image.fromarray((np.array(colour) + noise).clip(0, 255).astype(np.uint8)).save(folder / name / f"{i}.png")


def use_python() -> None:
    """The run in Python, a page of the review, and an estimator."""
    from newkind.review.pages import render_message

    run = newkind.load("run")
    assert len(run.assignments) == 18
    assert b"Newkind" in bytes(render_message("Title", "Text", 404).body)
    X, y = np.random.default_rng(0).normal(size=(40, 8)), [0, 1, -1, -1] * 10
    assert newkind.SimGCD(3, device="cpu").fit(X, y).labels_.shape == (40,)


if __name__ == "__main__":
    main()
