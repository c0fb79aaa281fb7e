"""Views per second of the whole frozen backbone in fp32, bf16 and int8, at several image sizes, and the error of the features.

DINOv2 ViT-S/14 with its weights; parts of the two photographs in scikit-learn. The speed depends on the processor: bf16 needs
AVX-512 BF16 or AMX, and int8 is fastest with VNNI. What it costs in accuracy is in results/effort.md.
"""

from __future__ import annotations

import argparse
import json

import numpy as np
import torch
from sklearn.datasets import load_sample_images
from torch import Tensor
from torch.nn import functional as F

from measure import best_seconds
from newkind.backbone.loader import load_backbone
from newkind.config import BackboneConfig, Precision
from newkind.data.views import IMAGENET_MEAN, IMAGENET_STD

IMAGE_SIZES = (224, 168, 112, 84)
PRECISIONS: tuple[Precision, ...] = ("fp32", "bf16", "int8")
BAR = 1.5


def crops(n: int, image_size: int) -> Tensor:
    """Normalised crops (n, 3, S, S) of 336 pixels, resized."""
    generator, parts = np.random.default_rng(0), []
    pictures = load_sample_images().images
    for i in range(n):
        picture = pictures[i % 2]
        top, left = (int(generator.integers(0, side - 336)) for side in picture.shape[:2])
        parts.append(picture[top : top + 336, left : left + 336])
    pixels = torch.from_numpy(np.stack(parts)).permute(0, 3, 1, 2).float() / 255
    pixels = F.interpolate(pixels, size=image_size, mode="bicubic", antialias=True)
    return (pixels - torch.tensor(IMAGENET_MEAN).view(3, 1, 1)) / torch.tensor(IMAGENET_STD).view(3, 1, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    n, repeats = (16, 1) if quick else (64, 3)
    print(f"{n} views, {torch.get_num_threads()} threads")
    print(f"{'pixels':>8}{'precision':>12}{'views/s':>10}{'ratio':>8}{'smallest cosine to fp32':>26}")
    ratios: dict[str, float] = {}
    slowest = 0.0
    for image_size in IMAGE_SIZES[::2] if quick else IMAGE_SIZES:
        views, exact = crops(n, image_size), torch.empty(0)
        for precision in PRECISIONS:
            config = BackboneConfig(
                image_size=image_size, tuned_blocks=0, device="cpu", trunk_precision=precision, views=0
            )
            trunk = load_backbone(config).trunk
            seconds = best_seconds(lambda trunk=trunk, views=views: trunk(views), repeats)  # type: ignore[misc]
            found = trunk(views).cls
            exact = found if precision == "fp32" else exact
            slowest = slowest or seconds
            ratios[f"{precision}@{image_size}"] = round(slowest / seconds, 2)
            cosine = float(F.cosine_similarity(found, exact).min())
            print(
                f"{image_size:>8}{precision:>12}{n / seconds:>10.1f}{slowest / seconds:>7.2f}x{cosine:>26.4f}",
                flush=True,
            )
    value = ratios["bf16@224"]
    print(
        json.dumps(
            {
                "name": "cheaper_trunk",
                "value": value,
                "bar": BAR,
                "ok": value >= BAR,
                "unit": "times faster, bf16 at 224 pixels",
                **ratios,
            }
        )
    )


if __name__ == "__main__":
    main()
