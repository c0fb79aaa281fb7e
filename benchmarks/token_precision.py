"""Error of tokens in half precision and int8: class features from stored tokens, compared with those from fp32 tokens.

DINOv2 ViT-S/14 with its weights, 63 crops of each of the two photographs in scikit-learn.
"""

from __future__ import annotations

import argparse
import json

import torch
from sklearn.datasets import load_sample_images
from torch import Tensor

from newkind.backbone.record_layout import RecordLayout
from newkind.backbone.tokens import Tokens
from newkind.backbone.vit import split
from newkind.backbone.weights import load_vit
from newkind.data.views import IMAGENET_MEAN, IMAGENET_STD


def crops(n: int) -> Tensor:
    """Normalised random crops (2 n, 3, 224, 224)."""
    generator = torch.Generator().manual_seed(0)
    views = []
    for photograph in load_sample_images().images:
        image = torch.from_numpy(photograph.copy()).permute(2, 0, 1).float() / 255
        for _ in range(n):
            top = int(torch.randint(0, image.shape[1] - 224, (1,), generator=generator))
            left = int(torch.randint(0, image.shape[2] - 224, (1,), generator=generator))
            views.append(image[:, top : top + 224, left : left + 224])
    mean, std = torch.tensor(IMAGENET_MEAN).view(3, 1, 1), torch.tensor(IMAGENET_STD).view(3, 1, 1)
    return (torch.stack(views) - mean) / std


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    n = 6 if parser.parse_args().quick else 63
    loaded = load_vit("vit_small_patch14_dinov2.lvd142m", image_size=224)
    trunk, tuned = split(loaded.model)
    tokens = trunk(crops(n))
    with torch.no_grad():
        exact = tuned(tokens)
    errors, cosines = {}, {}
    for dtype in ("float16", "int8"):
        layout = RecordLayout(n_views=2, n_tokens=trunk.n_tokens, dim=trunk.dim, dtype=dtype)
        stored = [
            layout.unpack(layout.pack(Tokens(tokens.xhat[i : i + 3], tokens.cls[i : i + 3])).reshape(-1))
            for i in range(0, 2 * n, 3)
        ]
        with torch.no_grad():
            feature = torch.cat([tuned(part) for part in stored])
        errors[dtype] = float((feature - exact).norm() / exact.norm())
        cosines[dtype] = float(torch.nn.functional.cosine_similarity(feature, exact).min())
        size = layout.record_bytes / 3 / 1e3
        print(
            f"{dtype:8} {size:6.0f} KB per view   relative error {errors[dtype]:.1e}   smallest cosine {cosines[dtype]:.6f}"
        )
    value = round(errors["float16"], 6)
    print(
        json.dumps(
            {
                "name": "token_precision",
                "value": value,
                "bar": 1e-3,
                "ok": value < 1e-3,
                "unit": "relative error, float16",
                "int8": errors["int8"],
                "smallest cosine": cosines,
            }
        )
    )


if __name__ == "__main__":
    main()
