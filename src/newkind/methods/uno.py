"""UNO+ (Fini et al. 2021): swapped prediction of Sinkhorn self-labels, with several heads for all categories.

    L = [mean over heads of swapped prediction + the same for heads with more prototypes (over-clustering)] / 2

The target of a labelled sample is its class; the target of an unlabelled sample is its self-label, which may be any of the
K categories (in UNO itself only a new one, because there no unlabelled sample is of a known class).

| | original | here | why |
|---|---|---|---|
| new categories | behind an MLP per head, with batch norm | an MLP per head without it (`head`) | several processes equal one |
| known classes | prototypes on the backbone's feature, shared by all heads | the same (`known_on`) | |
| UNO+ in the SimGCD paper | classifier on the projector | `known_on=head` | that paper's words, without code |
| over-clustering | K_known + 3 K_new prototypes; 5 and 10 K_new on some data | K_known + 3 K_new (`overcluster_of`) | |
| heads and both kinds of heads | mean | the same (`combine`) | |
| prototypes | set to length 1 before every step | start with length 1; cosines | the same logits |
| views | 2 large crops and 2 small ones | 2 views | views of all methods are the same |
| optimizer | 0.4 for 512 images, weight decay 1.5e-4, 10 epochs of warm-up | the same without warm-up | one schedule for all methods |
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import ClassVar, Literal, cast

import torch
from torch import Tensor, nn

from newkind import distributed
from newkind.losses.sinkhorn import self_label_loss
from newkind.methods.heads import CosineClassifier, Projector
from newkind.methods.method import AllImages, Batch, LossTerms, Method, MethodConfig, gather_views
from newkind.optimizer_config import OptimizerConfig
from newkind.setting import setting

__all__ = ["UNO", "UNOConfig"]


@dataclass(frozen=True, kw_only=True)
class UNOConfig(MethodConfig):
    """Settings of UNO+. The defaults are those of the original.

    Parameters
    ----------
    temperature : float, default=0.1
        Temperature of the predictions.
    sinkhorn_temperature : float, default=0.05
        Temperature of the self-labels.
    sinkhorn_iterations : int, default=3
        Number of Sinkhorn iterations.
    sinkhorn_over : {"unlabelled", "all"}, default="unlabelled"
        Samples of a view over which categories are used equally.
    n_heads : int, default=4
        Number of heads; the one with the lowest loss over the last epoch is used for predictions.
    head : {"mlp", "linear"}, default="mlp"
        What precedes the prototypes of a head: an MLP, or nothing.
    head_hidden : int, default=2048
        Width of the hidden layer of the MLP.
    head_out : int, default=256
        Dimension of the MLP's output.
    known_on : {"backbone", "head"}, default="backbone"
        Where the prototypes of known classes are: on the feature of the backbone, shared by all heads, or in every head.
    overcluster_factor : int, default=3
        Number of prototypes of an over-clustering head, as a multiple of K or of the number of new categories; 0 for no
        such heads.
    overcluster_of : {"new", "all"}, default="new"
        What is multiplied: the new categories (known classes have one prototype each), or all.
    combine : {"mean", "sum"}, default="mean"
        How the losses of heads and over-clustering heads are combined.
    """

    temperature: float = setting(0.1, above=0)
    sinkhorn_temperature: float = setting(0.05, above=0)
    sinkhorn_iterations: int = setting(3, at_least=1, at_most=1000)
    sinkhorn_over: Literal["unlabelled", "all"] = "unlabelled"
    n_heads: int = setting(4, at_least=1, at_most=100)
    head: Literal["mlp", "linear"] = "mlp"
    head_hidden: int = setting(2048, at_least=1, at_most=2**16)
    head_out: int = setting(256, at_least=1, at_most=2**16)
    known_on: Literal["backbone", "head"] = "backbone"
    overcluster_factor: int = setting(3, at_least=0, at_most=100)
    overcluster_of: Literal["new", "all"] = "new"
    combine: Literal["mean", "sum"] = "mean"


class Head(nn.Module):
    """Prototypes, behind an MLP or on the feature itself."""

    def __init__(self, dim: int, n_prototypes: int, config: UNOConfig) -> None:
        super().__init__()
        is_mlp = config.head == "mlp"
        self.mlp = Projector(dim, hidden=config.head_hidden, out=config.head_out, n_layers=2) if is_mlp else None
        self.classifier = CosineClassifier(config.head_out if is_mlp else dim, n_prototypes, unit=True)

    def forward(self, features: Tensor) -> Tensor:
        """(M, d) -> (M, prototypes)."""
        return self.classifier(features if self.mlp is None else self.mlp(features))  # type: ignore[no-any-return]


class UNO(Method):
    """Heads for K categories, of which one is used for predictions, and over-clustering heads that only help to train.

    The number of known classes is not known when the heads are built. All of them have room for K categories; with known
    classes on the backbone, heads use their first K - n_known prototypes for the new categories.

    Attributes
    ----------
    head_losses : Tensor of shape (n_heads,)
        Sum of each head's loss over the current epoch.
    n_known : Tensor of shape ()
        Number of known classes.
    """

    spare_prototypes: ClassVar[bool] = True
    optimizer: ClassVar[OptimizerConfig] = OptimizerConfig(batch_size=512, weight_decay=1.5e-4, decay_vectors=True)
    config: UNOConfig
    head_losses: Tensor
    n_known: Tensor

    def __init__(self, dim: int, n_categories: int, config: UNOConfig) -> None:
        super().__init__(dim, n_categories, config)
        self.shared = CosineClassifier(dim, n_categories, unit=True) if config.known_on == "backbone" else None
        self.heads = nn.ModuleList(Head(dim, n_categories, config) for _ in range(config.n_heads))
        n_over = config.n_heads if config.overcluster_factor else 0
        n_prototypes = n_categories * config.overcluster_factor
        self.over_heads = nn.ModuleList(Head(dim, n_prototypes, config) for _ in range(n_over))
        self.register_buffer("head_losses", torch.zeros(config.n_heads))
        self.register_buffer("n_known", torch.zeros((), dtype=torch.int64))

    @property
    def temperature(self) -> float:
        return self.config.temperature

    @property
    def best_head(self) -> Head:
        """The head that is used for predictions."""
        return cast(Head, self.heads[int(self.head_losses.argmin())])

    def start(self, images: AllImages) -> None:
        self.n_known.fill_(images.n_known)

    def begin_epoch(self, epoch: int) -> None:  # noqa: ARG002
        self.head_losses.zero_()

    def logits(self, features: Tensor) -> Tensor:
        return self._logits(features, [self.best_head], [self.n_categories])[0]

    def _logits(self, features: Tensor, heads: list[Head], n_columns: list[int]) -> list[Tensor]:
        """Logits (M, columns) of each head: shared prototypes of known classes first, then those of the head."""
        shared = features[:, :0] if self.shared is None else self.shared(features)[:, : int(self.n_known)]
        n = shared.shape[1]
        return [
            torch.cat([shared, head(features)[:, : columns - n]], dim=1)
            for head, columns in zip(heads, n_columns, strict=True)
        ]

    def _n_overclustered(self) -> int:
        """Number of prototypes, known ones included, that an over-clustering head uses."""
        factor, n_known = self.config.overcluster_factor, int(self.n_known)
        if self.config.overcluster_of == "all":
            return factor * self.n_categories
        return n_known + factor * (self.n_categories - n_known)

    def loss_terms(self, features: Tensor, batch: Batch) -> LossTerms:
        config, n_own, n_over = self.config, len(self.heads), len(self.over_heads)
        sizes = [self.n_categories] * n_own + [self._n_overclustered()] * n_over
        heads = cast(list[Head], [*self.heads, *self.over_heads])
        joined = gather_views(torch.cat(self._logits(features, heads, sizes), dim=-1), batch)  # (V * B, all)
        labels = batch.gather(batch.labels)  # (B,)
        each = [joined[:, start:end] for start, end in pairwise([0, *accumulate(sizes)])]
        losses = torch.stack([self._swapped(logits, labels, batch.n_views) for logits in each])  # (heads,)
        own, over = losses[:n_own], losses[n_own:]
        # Gathered, so that all processes use the same head for predictions.
        self.head_losses += distributed.gather(own[None].float()).mean(dim=0)
        parts = {"swapped": own.mean()} | ({"overclustered": over.mean()} if n_over else {})
        weight = 1 / len(parts) if config.combine == "mean" else 1.0
        return LossTerms(parts, dict.fromkeys(("swapped", "overclustered"), weight))

    def _swapped(self, logits: Tensor, labels: Tensor, n_views: int) -> Tensor:
        config = self.config
        return self_label_loss(
            logits,
            n_views,
            student_temperature=config.temperature,
            sinkhorn_temperature=config.sinkhorn_temperature,
            n_iterations=config.sinkhorn_iterations,
            labels=labels,
            over=config.sinkhorn_over,
        )

    @torch.no_grad()
    def merge_categories(self, groups: list[list[int]], sizes: list[int]) -> None:
        """Every head becomes the merged one that is used for predictions; over-clustering heads keep their first prototypes."""
        best, n = self.best_head, 0 if self.shared is None else int(self.n_known)
        self.n_categories = len(groups)
        best.classifier.merge([[i - n for i in group] for group in groups[n:]], sizes[n:])
        if self.shared is not None:
            self.shared.prototypes = nn.Parameter(self.shared.prototypes.detach()[: self.n_categories].clone())
            found = best.classifier.prototypes.detach()
            best.classifier.prototypes = nn.Parameter(torch.cat([found, found.new_zeros(n, found.shape[1])]))
        for head in cast(list[Head], list(self.heads)):
            head.classifier.prototypes = nn.Parameter(best.classifier.prototypes.detach().clone())
            head.load_state_dict(best.state_dict())
        for head in cast(list[Head], list(self.over_heads)):
            n_kept = self.n_categories * self.config.overcluster_factor
            head.classifier.prototypes = nn.Parameter(head.classifier.prototypes.detach()[:n_kept].clone())
