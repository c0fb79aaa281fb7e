"""FLOP/s of the frozen trunk while caching, compared with the machine's peak (a large fp32 matrix product in the same run)."""

from __future__ import annotations

import argparse
import json

import torch

from measure import best_seconds, peak_flops
from newkind.backbone.cache_plan import GROUP
from newkind.backbone.vit import Trunk, build_vit, split

MODELS = {"ViT-S/14": "vit_small_patch14_dinov2.lvd142m", "ViT-B/16": "vit_base_patch16_224.dino"}


def flops_per_view(trunk: Trunk, patch: int) -> float:
    """FLOPs of the matrix products: patch embedding, and per block qkv, scores, context, projection and MLP."""
    n, d, depth = trunk.n_tokens, trunk.dim, len(trunk.model.blocks)
    block = 12 * n * d * d + 2 * n * n * d
    return 2.0 * (n * d * 3 * patch * patch + depth * block)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    views = torch.randn(2 * GROUP if quick else 9 * GROUP, 3, 224, 224)
    shares, rates = {}, {}
    print(f"{len(views)} views of 224 pixels, fp32, {torch.get_num_threads()} threads")
    print(f"{'':10}{'views/s':>10}{'GFLOP/s':>10}{'peak':>10}{'share':>8}{'timm, one batch':>18}")
    for title, name in MODELS.items():
        model = build_vit(name, image_size=224)
        patch = model.patch_embed.patch_size[0]
        trunk, _ = split(model)
        peak = peak_flops(3)
        seconds = best_seconds(lambda trunk=trunk: trunk(views), 2 if quick else 3)  # type: ignore[misc]
        peak = max(peak, peak_flops(3))
        with torch.inference_mode():
            whole = best_seconds(lambda trunk=trunk: trunk._forward(views), 1)  # type: ignore[misc]
        speed = len(views) * flops_per_view(trunk, patch) / seconds
        shares[title], rates[title] = round(speed / peak, 3), round(len(views) / seconds, 1)
        print(
            f"{title:10}{rates[title]:>10.1f}{speed / 1e9:>10.0f}{peak / 1e9:>10.0f}{100 * shares[title]:>7.0f}%"
            f"{len(views) / whole:>10.1f} views/s"
        )
    value = min(shares.values())
    print(
        json.dumps(
            {
                "name": "trunk",
                "value": value,
                "bar": 0.7,
                "ok": value >= 0.7,
                "unit": "of the matmul peak",
                "views/s": rates,
                **shares,
            }
        )
    )


if __name__ == "__main__":
    main()
