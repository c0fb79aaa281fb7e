"""Base classes of all methods: configuration, batch, loss terms, and the life-cycle hooks that the trainer calls."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import torch
from torch import Tensor, nn

from newkind.errors import ConfigError
from newkind.optimizer_config import OptimizerConfig
from newkind.setting import check_settings

if TYPE_CHECKING:
    from newkind.methods.rehearsal import Rehearsal

__all__ = ["AllImages", "Batch", "LossTerms", "Method", "MethodConfig", "gather_views"]


def _identity(x: Tensor) -> Tensor:
    return x


@dataclass(frozen=True, kw_only=True)
class MethodConfig:
    """Base class of the settings of a method. Fields are checked by their types and bounds."""

    def __post_init__(self) -> None:
        check_settings(self)

    @property
    def needs_truth(self) -> bool:
        """Whether the method is an oracle that gets the truth of the images it trains on."""
        return False


class AllImages(Protocol):
    """All images of a run, as `Method.start` and `Method.settle` see them."""

    labels: Tensor
    """(n,) int64 on the CPU: class indices, -1 for unlabelled."""
    n_known: int
    """Number of known classes."""
    seed: int
    """Seed of random choices."""

    def features(self) -> Tensor:
        """Features (n, d) on the CPU, averaged over the views of the effort.

        All processes have to ask. The first one gets them, the others get (0, d), and what the first one computes from them is
        copied to the others.
        """


@dataclass(frozen=True, kw_only=True)
class Batch:
    """What a method knows of a batch beside its features.

    Parameters
    ----------
    labels : Tensor of shape (B,)
        Class indices, -1 for unlabelled.
    n_views : int
        Number of views per image.
    epoch : int
        Current epoch, from 0.
    n_epochs : int
        Number of epochs of the training.
    gather : callable
        Joins (B, ...) tensors of all processes, with gradient, if losses are global; otherwise the identity.
    teacher_logits : Tensor of shape (n_views * B, K), optional
        Logits of the moving average of the network, for methods with a `teacher_decay`.
    generator : torch.Generator, optional
        CPU generator for random choices, seeded by seed and epoch, so that a resumed training draws the same.
    truth : Tensor of shape (B,), optional
        True classes, -1 where unknown. Only for the oracle of the pilot study.
    """

    labels: Tensor
    n_views: int
    epoch: int
    n_epochs: int
    gather: Callable[[Tensor], Tensor] = _identity
    teacher_logits: Tensor | None = None
    generator: torch.Generator | None = None
    truth: Tensor | None = None


@dataclass(frozen=True)
class LossTerms:
    """Named parts of a loss and their weights.

    Parameters
    ----------
    parts : dict of str to Tensor
        Scalar loss parts, unweighted.
    weights : dict of str to float
        Weight of each part.
    """

    parts: dict[str, Tensor] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)

    def total(self) -> Tensor:
        """Weighted sum of the parts, a scalar."""
        return sum(
            (self.weights[name] * part for name, part in self.parts.items()), start=next(iter(self.parts.values())) * 0
        )


class Method(nn.Module, ABC):
    """Heads, loss terms and logits of a method.

    Subclasses hold their heads as modules and what they remember between steps as buffers, which checkpoints contain.
    The trainer calls, in this order: `start` before the first epoch;
    `begin_epoch` and `loss_terms` in each epoch; `settle` after the last, if there was one; `calibrate`; then `logits`.

    Parameters
    ----------
    dim : int
        Dimension d of the features.
    n_categories : int
        Number of categories K, known and new together.
    config : MethodConfig
        Settings of the method.

    Attributes
    ----------
    trains : bool
        Whether there is something to train. Otherwise the number of epochs is 0.
    needs_training : bool
        Whether the method is of no use without training. Otherwise `start` alone gives a result.
    spare_prototypes : bool
        Whether an estimated number of categories is given generously, and categories that are empty, tiny or duplicate
        are merged at the end (`merge_categories`). For methods whose prototypes start at random.
    costly_readout : bool
        Whether `settle` is so costly that it is done during training only to compute scores.
    block_rate, head_rate : float
        Learning rates of the tuned blocks and of the heads, as multiples of the learning rate of the training.
    teacher_decay : float or None
        Decay of the moving average of the network that computes `Batch.teacher_logits`; None for no average.
    teacher_ramp : bool
        Whether this decay rises to its value over the first steps.
    config_class : type of MethodConfig
        Class of the settings, for methods of other packages.
    title : str
        Name for tables and messages, for methods of other packages. Default: that of the class.
    optimizer : OptimizerConfig
        Learning rate, batch size and weight decay that are used unless others are given.
    rehearsal : Rehearsal or None
        What `calibrate` found; None if confidences are not calibrated.
    """

    config_class: ClassVar[type[MethodConfig]] = MethodConfig
    title: ClassVar[str] = ""
    trains: ClassVar[bool] = True
    needs_training: ClassVar[bool] = True
    spare_prototypes: ClassVar[bool] = False
    costly_readout: ClassVar[bool] = False
    block_rate: float = 1.0
    head_rate: float = 1.0
    teacher_decay: float | None = None
    teacher_ramp: bool = False
    optimizer: ClassVar[OptimizerConfig] = OptimizerConfig()
    rehearsal: Rehearsal | None = None
    config: Any

    def __init__(self, dim: int, n_categories: int, config: Any) -> None:  # noqa: ARG002 - for the heads of subclasses
        super().__init__()
        self.n_categories = n_categories
        self.config = config

    @abstractmethod
    def loss_terms(self, features: Tensor, batch: Batch) -> LossTerms:
        """Loss of one batch.

        Parameters
        ----------
        features : Tensor of shape (n_views * B, d)
            Class features, ordered by view.
        batch : Batch
            Labels and everything else that is known of the batch.

        Returns
        -------
        LossTerms
        """

    @abstractmethod
    def logits(self, features: Tensor) -> Tensor:
        """Logits (M, K) of features (M, d), not divided by the temperature."""

    @property
    def temperature(self) -> float:
        """Temperature of the softmax that turns logits into the probabilities of the results."""
        return 1.0

    @property
    def smoothing(self) -> float:
        """Share of these probabilities that is spread evenly over all categories."""
        return 0.0

    def begin_epoch(self, epoch: int) -> None:
        """Called before the first batch of an epoch, which counts from 0."""

    def start(self, images: AllImages) -> None:
        """Initialise from all images, before the first epoch. Default: nothing."""

    def settle(self, images: AllImages) -> None:
        """Last stage of a method that clusters all images, after a training. Default: nothing."""

    def calibrate(self, images: AllImages) -> None:
        """Calibrate the probabilities of the settled method. Default: nothing."""

    @property
    def has_outlier_rule(self) -> bool:
        """Whether `outliers` says which images fit no category."""
        return False

    def outliers(self, features: Tensor) -> Tensor:
        """Whether each of the features (M, d) fits no category, shape (M,). Default: all fit."""
        return torch.zeros(features.shape[0], dtype=torch.bool, device=features.device)

    def is_outlier(self, features: Tensor) -> Tensor | None:
        """Whether each of the features (M, d) fits no category, shape (M,); None if the method has no rule."""
        return self.outliers(features) if self.has_outlier_rule else None

    def merge_categories(self, groups: list[list[int]], sizes: list[int]) -> None:
        """Make one category of each group of prototypes, in this order; prototypes in no group are dropped.

        Parameters
        ----------
        groups : list of list of int
            Prototypes of each category.
        sizes : list of int, of length K
            Number of images per prototype, its weight within its group.
        """
        raise ConfigError(
            f"{type(self).__name__} cannot merge its {len(sizes)} categories into {len(groups)}.", code="cannot-merge"
        )


def gather_views(x: Tensor, batch: Batch) -> Tensor:
    """(V * B, ...) of this process to (V * all B, ...) of all processes, still ordered by view."""
    by_sample = x.view(batch.n_views, -1, x.shape[-1]).transpose(0, 1)  # (B, V, ...)
    return batch.gather(by_sample).transpose(0, 1).reshape(-1, x.shape[-1])
