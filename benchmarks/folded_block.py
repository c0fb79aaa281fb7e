"""Forward and backward pass of the tuned block, batch 256: folded to the class token, compared with timm's block and norm."""

from __future__ import annotations

import argparse
import json

import torch

from measure import best_seconds
from newkind.backbone.folded import FoldedBlock, normalise_tokens
from newkind.backbone.vit import build_vit

MODELS = {"ViT-S/14": "vit_small_patch14_dinov2.lvd142m", "ViT-B/16": "vit_base_patch16_224.dino"}
BATCH = 256


def measure(name: str, *, repeats: int) -> tuple[float, float]:
    """Seconds of the full block and of the folded block."""
    torch.manual_seed(0)
    model = build_vit(name, image_size=224)
    block, norm = model.blocks[-1], model.norm
    n_tokens = model.patch_embed.num_patches + model.num_prefix_tokens
    x = torch.randn(BATCH, n_tokens, model.embed_dim)
    direction = torch.randn(BATCH, model.embed_dim)
    xhat, cls = normalise_tokens(x, block.norm1.eps), x[:, 0].clone()
    folded = FoldedBlock(block, norm)

    def full_pass() -> None:
        (norm(block(x))[:, 0] * direction).sum().backward()

    def folded_pass() -> None:
        (folded(xhat, cls) * direction).sum().backward()

    return best_seconds(full_pass, repeats), best_seconds(folded_pass, 10 * repeats)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    repeats = 1 if parser.parse_args().quick else 3
    print(f"forward + backward, batch {BATCH}, fp32, {torch.get_num_threads()} threads")
    print(f"{'':10}{'full block':>14}{'folded':>12}{'ratio':>9}")
    ratios = {}
    for title, name in MODELS.items():
        full, folded = measure(name, repeats=repeats)
        ratios[title] = round(full / folded, 1)
        print(f"{title:10}{full:>12.2f} s{1000 * folded:>9.0f} ms{ratios[title]:>8.0f}x")
    value = min(ratios.values())
    print(
        json.dumps(
            {"name": "folded_block", "value": value, "bar": 25, "ok": value >= 25, "unit": "times faster", **ratios}
        )
    )


if __name__ == "__main__":
    main()
