"""Class features of the evaluation view in several precisions of the trunk and sizes of the image.

    python benchmarks/studies/trunk_features.py DATA OUT.npz --kinds fp32@112 bf16@112 int8@112 fp32@84

Writes `labels` (-1 for unlabelled), `truth` (known classes first) and, per kind PRECISION@PIXELS, an array (n, d).
`benchmarks/studies/one_pass.py` compares them.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from newkind.backbone.loader import load_backbone
from newkind.backbone.online import OnlineTokens
from newkind.config import BackboneConfig
from newkind.data import Collection, Features, open_data

BATCH = 32


def features_of(collection: Collection, kind: str) -> NDArray[np.float32]:
    """Features (n, d) of all images of a collection."""
    precision, _, pixels = kind.partition("@")
    given: dict[str, Any] = {"trunk_precision": precision, "image_size": int(pixels), "device": "cpu"}
    backbone, items = load_backbone(BackboneConfig(tuned_blocks=0, **given)), collection.catalog.items
    if isinstance(items, Features):
        raise SystemExit("Images are needed.")
    source = OnlineTokens(items, backbone.trunk, backbone.recipe)
    batches = (np.arange(i, min(i + BATCH, len(items))) for i in range(0, len(items), BATCH))
    found: NDArray[np.float32] = torch.cat([b.tokens.cls for b in source.evaluation_batches(batches)]).numpy()
    if len(found) != len(items):
        raise SystemExit("Some images cannot be read.")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("out", type=Path)
    parser.add_argument("--kinds", nargs="+", default=["fp32@112", "bf16@112", "int8@112", "fp32@84"])
    options = parser.parse_args()
    collection = open_data(options.data)
    if collection.truth is None:
        raise SystemExit(f"{options.data} needs truth.")
    arrays = {kind: features_of(collection, kind) for kind in options.kinds}
    np.savez(options.out, labels=collection.catalog.labels, truth=collection.truth.labels, **arrays)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
