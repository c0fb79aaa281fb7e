"""Two finished runs to damage: one of ready features, one of images with a small random backbone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from command_line import newkind
from PIL import Image

from feature_clusters import feature_clusters

__all__ = ["BACKBONE", "SmallRuns", "make_runs"]

BACKBONE = ("--backbone", "vit_tiny_patch16_224", "--random-weights", "--image-size", "32")
COLOURS = {"red": (200, 30, 30), "green": (30, 200, 30), "blue": (30, 30, 200), "grey": (120, 120, 120)}


@dataclass(frozen=True)
class SmallRuns:
    """Data and run folders, with the command that made each run."""

    features: Path
    images: Path
    features_run: Path
    images_run: Path

    def discover(self, run: Path) -> Sequence[str]:
        """The command that made a run, or a copy of it at another place."""
        data, more = (self.images, BACKBONE) if "image" in run.name else (self.features, ())
        return ["discover", str(data), "--out", str(run), "--effort", "quick", "--no-report", *more]


def make_runs(folder: Path) -> SmallRuns:
    """Make data and runs in a folder."""
    runs = SmallRuns(folder / "clouds.npz", folder / "shapes", folder / "feature-run", folder / "image-run")
    np.savez(runs.features, **feature_clusters(6, 3, n_each=10, dim=8))
    _draw(runs.images)
    for run in (runs.features_run, runs.images_run):
        done = newkind(runs.discover(run))
        assert done.code == 0, done.errors + done.traceback
    return runs


def _draw(root: Path) -> None:
    """Pictures of four kinds that differ by colour; two are known."""
    (root / "img").mkdir(parents=True)
    rng = np.random.default_rng(0)
    rows = ["file_name,label,truth"]
    for kind, colour in COLOURS.items():
        for i in range(6):
            pixels = np.array(colour) + rng.integers(-25, 25, (24, 28, 3))
            Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(root / "img" / f"{kind}{i}.png")
            rows.append(f"img/{kind}{i}.png,{kind if kind in ('red', 'green') and i % 2 else ''},{kind}")
    (root / "metadata.csv").write_text("\n".join(rows) + "\n")
