"""Where a build of the feature cache spends its time: reading, decoding, resizing, cropping, trunk and writing, as shares.

DINOv2 ViT-S/14 with random weights, one view per image, JPEG files of two sizes cut from the two photographs in
scikit-learn (CUB has 500 x 375 pixels, a telephone 4,000 x 3,000, enlarged and therefore smoother than a real photograph). All stages are timed in one thread, as processor time;
writing as elapsed time, because it waits for the disk. A build runs the stages before the trunk in other threads, but on the
same processors. `--precision int8` shows what is left when the trunk is cheaper.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import torch
from PIL import Image
from sklearn.datasets import load_sample_images

from newkind.backbone.cache_plan import FEATURE_GROUP
from newkind.backbone.decoded_views import content_digest
from newkind.backbone.loader import load_backbone
from newkind.backbone.record_layout import RecordLayout
from newkind.backbone.token_store import TokenStore
from newkind.backbone.vit import Trunk
from newkind.config import BackboneConfig, Precision
from newkind.data.items import FileImages
from newkind.data.names import Names
from newkind.data.views import ViewRecipe, numbered_view, resize_for_views

T = TypeVar("T")
STAGES = ("read and digest", "decode", "resize", "crop and normalise", "trunk", "write")
PHOTOGRAPHS = {"500 x 375": (500, 375), "4,000 x 3,000": (4000, 3000)}
IMAGE_SIZES = (112, 224)


def photographs(folder: Path, size: tuple[int, int], n: int) -> FileImages:
    """JPEG files of a size, each with another part of a photograph."""
    folder.mkdir()
    pictures = [Image.fromarray(pixels) for pixels in load_sample_images().images]
    for i in range(n):
        part = pictures[i % 2].crop((i, i, 560 + i, 420)).resize(size, Image.Resampling.BICUBIC)
        part.save(folder / f"{i:03d}.jpg", quality=92)
    return FileImages(folder, Names([f"{i:03d}.jpg" for i in range(n)]))


class Stopwatch:
    """Seconds of each stage."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(STAGES, 0.0)

    def __call__(self, stage: str, function: Callable[[], T], clock: Callable[[], float] = time.process_time) -> T:
        started = clock()
        result = function()
        self.seconds[stage] += clock() - started
        return result


def build(images: FileImages, trunk: Trunk, recipe: ViewRecipe, folder: Path) -> dict[str, float]:
    """Seconds of each stage of a build of the evaluation view; decoding includes what Pillow reads of the file again."""
    watch = Stopwatch()
    store = TokenStore(folder, RecordLayout(n_views=0, n_tokens=0, dim=trunk.dim, dtype="float32"), about={})
    for start in range(0, len(images), FEATURE_GROUP):
        rows, views, digests = range(start, min(start + FEATURE_GROUP, len(images))), [], []
        for i in rows:
            digests.append(watch("read and digest", lambda i=i: content_digest(images, i)))  # type: ignore[misc]
            image = watch("decode", lambda i=i: images.open_reduced(i, shorter_side=recipe.decoded))  # type: ignore[misc]
            resized = watch("resize", lambda image=image: resize_for_views(image, recipe))  # type: ignore[misc]
            views.append(
                watch(
                    "crop and normalise",
                    lambda resized=resized: numbered_view(resized, recipe, 0, seed=0, content=b""),  # type: ignore[misc]
                )
            )
        batch = watch("crop and normalise", lambda views=views: torch.stack(views))  # type: ignore[misc]
        tokens = watch("trunk", lambda batch=batch: trunk(batch))  # type: ignore[misc]
        watch("write", lambda d=digests, t=tokens: store.append(d, t), time.perf_counter)  # type: ignore[misc]
    store.close()
    return watch.seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--precision", default="fp32", choices=("fp32", "bf16", "int8"))
    options = parser.parse_args()
    precision: Precision = options.precision
    torch.set_num_threads(1)
    n = FEATURE_GROUP if options.quick else 4 * FEATURE_GROUP
    print(f"{n} images, one view each, {precision}, shares in %")
    print(f"{'pixels':>8}{'files':>16}" + "".join(f"{stage:>20}" for stage in STAGES))
    shares = {}
    for image_size in IMAGE_SIZES:
        trunk = load_backbone(
            BackboneConfig(
                random_weights=True, image_size=image_size, tuned_blocks=0, device="cpu", trunk_precision=precision
            )
        ).trunk
        trunk(torch.zeros(1, 3, image_size, image_size))
        for title, size in PHOTOGRAPHS.items():
            with tempfile.TemporaryDirectory() as folder:
                images = photographs(Path(folder) / "images", size, n)
                seconds = build(images, trunk, ViewRecipe(image_size=image_size), Path(folder) / "store")
            total = sum(seconds.values())
            shares[f"{image_size} px, {title}"] = round(seconds["trunk"] / total, 3)
            print(
                f"{image_size:>8}{title:>16}" + "".join(f"{100 * seconds[stage] / total:>20.1f}" for stage in STAGES),
                flush=True,
            )
    value = min(share for title, share in shares.items() if title.endswith("500 x 375"))
    print(
        json.dumps(
            {
                "name": "build_profile",
                "value": value,
                "bar": 0.8,
                "ok": value >= 0.8,
                "unit": "of the time in the trunk, files of 500 x 375 pixels",
                **shares,
            }
        )
    )


if __name__ == "__main__":
    main()
