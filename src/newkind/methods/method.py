"""What every method is: heads, loss terms, logits. The engine knows nothing else of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field

from torch import Tensor, nn

__all__ = ["Batch", "LossTerms", "Method"]


def _identity(x: Tensor) -> Tensor:
    return x


@dataclass(frozen=True, kw_only=True)
class Batch:
    """What a method may know of a batch beside its features."""

    labels: Tensor
    """(B,): class indices, -1 for unlabelled."""
    n_views: int
    epoch: int
    n_epochs: int
    gather: Callable[[Tensor], Tensor] = _identity
    """Joins (B, ...) tensors of all processes with gradient, where losses are global; otherwise the identity."""


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
    """Subclasses hold their heads as modules."""

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
