"""Peak resident memory of the cache builder and the trainer for two numbers of images: it must not grow with them."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch

from child_process import read_arguments

V = 2


def peak_gigabytes() -> float:
    """Peak resident memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def build(n_images: int) -> None:
    """Build the token cache of `n_images` random images with ViT-S/14 (random weights)."""
    from PIL import Image

    from newkind.backbone.loader import load_backbone
    from newkind.backbone.sources import open_source
    from newkind.config import BackboneConfig
    from newkind.data import read_folder

    with tempfile.TemporaryDirectory() as folder:
        rng = np.random.default_rng(0)
        (Path(folder) / "photos" / "a").mkdir(parents=True)
        for i in range(n_images):
            pixels = Image.fromarray(rng.integers(0, 255, (12, 16, 3), dtype=np.uint8)).resize((640, 480))
            pixels.save(Path(folder) / "photos" / "a" / f"{i}.jpg")
        config = BackboneConfig(random_weights=True, views=V, device="cpu")
        os.environ["NEWKIND_CACHE"] = str(Path(folder) / "cache")
        open_source(read_folder(Path(folder) / "photos"), config, load_backbone(config))
    print(peak_gigabytes())


def train(n_images: int) -> None:
    """Train SimGCD for one epoch on a store of `n_images` random records of ViT-S/14."""
    from newkind.backbone.vit import build_vit, split
    from newkind.config import TrainingConfig
    from newkind.training.data import TrainingData
    from newkind.training.trainer import Trainer
    from training_epoch import fill_store, network_of

    trunk, tuned = split(build_vit("vit_small_patch14_dinov2.lvd142m", image_size=224))
    network, _ = network_of(tuned)
    with tempfile.TemporaryDirectory() as folder:
        cache = fill_store(Path(folder) / "store", trunk.n_tokens, trunk.dim, n_images)
        labels = np.maximum(np.arange(n_images) % 40 - 20, -1)
        trainer = Trainer(
            network,
            TrainingData(cache, np.arange(n_images), labels, n_known=20),
            TrainingConfig(epochs=1),
            device=torch.device("cpu"),
            checkpoint=Path(folder) / "checkpoint.safetensors",
            fingerprint="",
        )
        trainer.train(lambda _: None)
    print(peak_gigabytes())


def measure(kind: str, n: int) -> float:
    """Peak resident memory in GB of a new process that builds or trains with n images."""
    command = [sys.executable, __file__, "--child", kind, str(n)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env=os.environ, cwd=Path(__file__).parent
    )
    return float(done.stdout.strip().splitlines()[-1])


def main() -> None:
    arguments = read_arguments(__doc__)
    if arguments.child:
        {"build": build, "train": train}[arguments.child[0]](int(arguments.child[1]))
        return
    sizes = {
        "build": (16, 48) if arguments.quick else (100, 500),
        "train": (256, 512) if arguments.quick else (512, 3000),
    }
    print(f"{'':24}{'images':>8}{'peak GB resident':>22}")
    peaks = {}
    for kind, title in (("build", "building the cache"), ("train", "training from it")):
        for n in sizes[kind]:
            peaks[f"{kind} {n}"] = round(measure(kind, n), 2)
            print(f"{title:24}{n:>8,}{peaks[f'{kind} {n}']:>22.2f}")
    value = max(peaks.values())
    print(json.dumps({"name": "memory", "value": value, "bar": 2.0, "ok": value < 2.0, "unit": "GB resident", **peaks}))


if __name__ == "__main__":
    main()
