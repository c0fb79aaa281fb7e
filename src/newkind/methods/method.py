"""What every method is: heads, loss terms, logits. The engine knows nothing else of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor, nn

from newkind.errors import ConfigError

__all__ = ["Batch", "LossTerms", "Method", "MethodConfig", "gather_views"]


def _identity(x: Tensor) -> Tensor:
    return x


@dataclass(frozen=True, kw_only=True)
class MethodConfig:
    """What every method's config has."""

    n_categories: int
    """K: known and new categories together. May be larger than the truth."""

    def __post_init__(self) -> None:
        if self.n_categories < 2:
            raise ConfigError(f"At least 2 categories are needed; got {self.n_categories}.")


@dataclass(frozen=True, kw_only=True)
class Batch:
    """What a method may know of a batch beside its features."""

    labels: Tensor
    """(B,): class indices, -1 for unlabelled."""
    n_views: int
    epoch: int
    """From 0."""
    n_epochs: int
    gather: Callable[[Tensor], Tensor] = _identity
    """Joins (B, ...) tensors of all processes with gradient, where losses are global; otherwise the identity."""
    teacher_logits: Tensor | None = None
    """(n_views * B, K): what the moving average of the network says, for methods with a `teacher_decay`."""
    generator: torch.Generator | None = None
    """Of the CPU, for methods that draw; seeded by (seed, epoch), so that a resumed training draws the same."""
    truth: Tensor | None = None
    """(B,): true classes, -1 where unknown. Only for the oracle of the pilot study; None everywhere else."""


@dataclass(frozen=True)
class LossTerms:
    """Named parts and the weights with which they add up."""

    parts: dict[str, Tensor] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)

    def total(self) -> Tensor:
        return sum(
            (self.weights[name] * part for name, part in self.parts.items()), start=next(iter(self.parts.values())) * 0
        )


class Method(nn.Module, ABC):
    """Subclasses hold their heads as modules and what they remember between steps as buffers, which checkpoints keep."""

    trains: ClassVar[bool] = True
    """False: there is nothing to train, only to settle."""
    starts: bool = False
    """Whether `start` wants to look at all features before the first epoch."""
    settles: bool = False
    """Whether `settle` has to look at all features before `logits` mean anything."""
    n_looks: int = 0
    """Random views of each image that `start` and `settle` want averaged with the evaluation view."""
    block_rate: float = 1.0
    """The tuned blocks' learning rate, as a multiple of the training's."""
    head_rate: float = 1.0
    """The heads'."""
    merges: ClassVar[bool] = False
    """Whether it can be given more categories than needed, and `merge_categories` afterwards."""
    needs_truth: bool = False
    """Whether it is an oracle, which gets the truth of the images that it trains on."""
    teacher_decay: float | None = None
    """If set, a moving average of the network is kept and `Batch.teacher_logits` is there."""
    n_categories: int

    @abstractmethod
    def loss_terms(self, features: Tensor, batch: Batch) -> LossTerms:
        """features (n_views * B, d), view by view."""

    @abstractmethod
    def logits(self, features: Tensor) -> Tensor:
        """(M, d) -> (M, K): divided by nothing; softmax of `logits / temperature` are the probabilities."""

    @property
    def temperature(self) -> float:
        """With which logits become the probabilities that results show."""
        return 1.0

    def begin_epoch(self, epoch: int) -> None:
        """Called before the first batch of an epoch (from 0)."""

    def start(self, features: Tensor, labels: Tensor, *, n_known: int, seed: int) -> None:
        """Before the first epoch: features (n, d) of all images, labels (n,), -1 for unlabelled."""

    def settle(self, features: Tensor, labels: Tensor, *, n_known: int, seed: int) -> None:
        """The last stage of a method that clusters: features (n, d) of all images, labels (n,), -1 for unlabelled."""

    def merge_categories(self, groups: list[list[int]], sizes: list[int]) -> None:
        """Makes one category of each group of prototypes, in this order; a prototype in no group goes.

        sizes (K,): how many images each prototype has, which is its weight among its group.
        """
        raise ConfigError(f"{type(self).__name__} cannot make {len(groups)} categories of its {len(sizes)}.")


def gather_views(x: Tensor, batch: Batch) -> Tensor:
    """(V * B, ...) of this process to (V * all B, ...) of all, still view by view."""
    by_sample = x.view(batch.n_views, -1, x.shape[-1]).transpose(0, 1)  # (B, V, ...)
    return batch.gather(by_sample).transpose(0, 1).reshape(-1, x.shape[-1])
