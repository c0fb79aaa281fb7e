"""A second query token in the last block: does training gain more if labels teach another token than the class token?

    python benchmarks/studies/second_query.py DATA --image-size 112 --cache FOLDER --weights FILE --way labels --read-out mean

The second query is the class token plus a learned vector, which begins with zero. It enters the last block only and attends to the
same tokens, as in reciprocal learning with an auxiliary token (RLCD). With `--way labels` the supervised terms of `modern` act on its
feature and the unsupervised ones on that of the class token; with `--way both`, all terms act on both. `--read-out` is which of the
two features is settled and predicted: that of the class token or the mean of both. DATA has a truth. Prints Markdown.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import torch
from effort import scores_of, shown
from torch import Tensor, nn
from torch.nn import functional as F

from newkind.backbone.folded import FoldedBlock, normalise_tokens
from newkind.methods.method import AllImages, Batch, LossTerms
from newkind.methods.modern import Modern
from newkind.methods.registry import METHODS

plain_forward, plain_init = FoldedBlock.forward, FoldedBlock.__init__


def init_with_query(self: FoldedBlock, block: nn.Module, norm: nn.Module, **more: Any) -> None:
    """A folded block with the learned vector of the second query."""
    plain_init(self, block, norm, **more)
    self.second = nn.Parameter(torch.zeros_like(self.block.norm1.weight))


def forward_with_query(self: FoldedBlock, xhat: Tensor, cls: Tensor, sizes: Tensor | None = None) -> Tensor:
    """Features (B, 2d) of the class token and of the second query."""
    query = cls + self.get_parameter("second")
    tokens = torch.cat([normalise_tokens(query[:, None], self.block.norm1.eps), xhat], dim=1)
    n = xhat.new_ones(xhat.shape[:2]) if sizes is None else sizes
    n = torch.cat([n.new_zeros(len(n), 1), n], dim=1)  # no token attends to the second query
    return torch.cat([plain_forward(self, xhat, cls, sizes), plain_forward(self, tokens, query, n)], dim=1)


@dataclass(frozen=True, eq=False)
class Reduced:
    """All images with the features that are read out; implements `AllImages`."""

    images: AllImages
    method: TwoQueries

    def __getattr__(self, name: str) -> Any:
        return getattr(self.images, name)

    def features(self) -> Tensor:
        return self.method.reduce(self.images.features())


class TwoQueries(Modern):
    """`modern` with features of two queries."""

    way: ClassVar[str]
    read_out: ClassVar[str]

    def reduce(self, features: Tensor) -> Tensor:
        """(M, 2d) -> (M, d); features of one query are left as they are."""
        d = self.frame.weight.shape[0]
        if features.shape[1] == d:
            return features
        first, second = features[:, :d], features[:, d:]
        return first if self.read_out == "class" else (F.normalize(first, dim=1) + F.normalize(second, dim=1)) / 2

    def logits(self, features: Tensor) -> Tensor:
        return super().logits(self.reduce(features))

    def loss_terms(self, features: Tensor, batch: Batch) -> LossTerms:
        d = self.frame.weight.shape[0]
        first, second = super().loss_terms(features[:, :d], batch), super().loss_terms(features[:, d:], batch)
        supervised = ("supcon", "supervised")
        if self.way == "labels":
            return replace(first, parts={n: (second if n in supervised else first).parts[n] for n in first.parts})
        return replace(first, parts={name: (part + second.parts[name]) / 2 for name, part in first.parts.items()})

    def start(self, images: AllImages) -> None:
        super().start(Reduced(images, self))

    def settle(self, images: AllImages) -> None:
        super().settle(Reduced(images, self))

    def calibrate(self, images: AllImages) -> None:
        """Nothing: confidences are not measured."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--weights")
    parser.add_argument("--trunk-precision", default="int8", choices=("fp32", "bf16", "int8"))
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--way", choices=("labels", "both"), default="labels")
    parser.add_argument("--read-out", choices=("class", "mean"), default="class")
    asked = parser.parse_args()
    os.environ["NEWKIND_CACHE"] = str(asked.cache)
    FoldedBlock.__init__, FoldedBlock.forward = init_with_query, forward_with_query  # type: ignore[method-assign]
    TwoQueries.way, TwoQueries.read_out = asked.way, asked.read_out
    METHODS["modern"] = replace(METHODS["modern"], method=TwoQueries)
    settings = {
        "effort": "thorough",
        "views": 4,
        "epochs": asked.epochs,
        "first_answer": False,
        "trunk_precision": asked.trunk_precision,
    }
    with tempfile.TemporaryDirectory() as folder:
        runs = [
            scores_of(
                asked.data,
                Path(folder) / str(seed),
                image_size=asked.image_size,
                weights=asked.weights,
                seed=seed,
                **settings,
            )
            for seed in range(asked.seeds)
        ]
    print(
        f"| {asked.way}, {asked.read_out} | {shown(runs)} | {', '.join(f'{run[0]:.1f}' for run in runs)} |", flush=True
    )


if __name__ == "__main__":
    main()
