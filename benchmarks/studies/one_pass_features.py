"""Features from one pass of one view per image: subsets and windows of its tokens, mean patch, earlier blocks, merged tokens.

    python benchmarks/studies/one_pass_features.py DATA OUT.npz --image-size 112

Writes `labels` (-1 for unlabelled), `truth` (known classes first) and, per kind of feature, an array (n, d). `class` is the class
feature that Newkind uses. `benchmarks/studies/one_pass.py` compares them.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from newkind.backbone.folded import normalise_tokens
from newkind.backbone.merging import merge_tokens
from newkind.backbone.vit import TunedBlocks, split
from newkind.backbone.weights import load_vit
from newkind.data import open_data
from newkind.data.items import Features
from newkind.data.views import ViewRecipe, evaluation_view, resize_for_views

BACKBONE = "vit_small_patch14_dinov2.lvd142m"
BATCH, N_FREE = 8, 4
EARLIER = (8, 9, 10, 11)
"""Numbers of blocks, counted from 1, after which the class token is kept."""
SHARES = (0.5, 0.75)
MERGED = (2, 4, 8)
"""Patch tokens are merged to their number divided by these."""


def subsets(side: int, share: float, generator: torch.Generator) -> Iterator[Tensor]:
    """Token numbers of N_FREE random subsets of the patches, with the class token first."""
    n_kept = round(share * side * side)
    for _ in range(N_FREE):
        chosen = torch.randperm(side * side, generator=generator)[:n_kept] + 1
        yield torch.cat([torch.zeros(1, dtype=torch.long), chosen])


def windows(side: int) -> Iterator[Tensor]:
    """Token numbers of the four windows at the corners of the grid, three quarters of its side, with the class token first."""
    grid, width = torch.arange(side * side).view(side, side) + 1, round(0.75 * side)
    for top in (0, side - width):
        for left in (0, side - width):
            chosen = grid[top : top + width, left : left + width].reshape(-1)
            yield torch.cat([torch.zeros(1, dtype=torch.long), chosen])


def free_views(xhat: Tensor, cls: Tensor, tuned: TunedBlocks, chosen: Iterator[Tensor]) -> Tensor:
    """Mean feature (B, d) of the folded block over several choices of tokens."""
    return torch.stack([tuned.last(xhat[:, rows], cls) for rows in chosen]).mean(dim=0)


@torch.no_grad()
def features_of(views: Tensor, model: Any, tuned: TunedBlocks, seed: int) -> dict[str, Tensor]:
    """All kinds of features (B, d) of views (B, 3, S, S)."""
    generator = torch.Generator().manual_seed(seed)
    x, found = model._pos_embed(model.patch_embed(views)), {}
    for number, block in enumerate(model.blocks, start=1):
        x = block(x)
        if number in EARLIER:
            found[f"block {number}"] = tuned.last.norm(x[:, 0])
    xhat, cls = normalise_tokens(x, tuned.last.block.norm1.eps), x[:, 0]
    side = round((xhat.shape[1] - 1) ** 0.5)
    found["class"] = tuned.last(xhat, cls)
    found["mean patch"] = tuned.last.norm(tuned.last.block(x))[:, 1:].mean(dim=1)
    found["windows"] = free_views(xhat, cls, tuned, windows(side))
    for share in SHARES:
        found[f"subsets {share}"] = free_views(xhat, cls, tuned, subsets(side, share, generator))
    for factor in MERGED:
        merged = merge_tokens(xhat, n_prefix=1, n_patches=side * side // factor)
        found[f"merged 1/{factor}"] = tuned.last(merged.xhat, cls, merged.sizes)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("out", type=Path)
    parser.add_argument("--image-size", type=int, default=112)
    options = parser.parse_args()
    collection, recipe = open_data(options.data), ViewRecipe(image_size=options.image_size)
    items, truth = collection.catalog.items, collection.truth
    if isinstance(items, Features) or truth is None:
        raise SystemExit(f"{options.data} needs images and truth.")
    trunk, tuned = split(load_vit(BACKBONE, image_size=options.image_size).model)
    kept: dict[str, list[Tensor]] = defaultdict(list)
    for start in range(0, len(items), BATCH):
        rows = range(start, min(start + BATCH, len(items)))
        views = torch.stack([evaluation_view(resize_for_views(items.open(i), recipe), recipe) for i in rows])
        for kind, values in features_of(views, trunk.model, tuned, start).items():
            kept[kind].append(values)
    arrays = {kind: torch.cat(values).numpy() for kind, values in kept.items()}
    np.savez(options.out, labels=collection.catalog.labels, truth=truth.labels, **arrays)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
