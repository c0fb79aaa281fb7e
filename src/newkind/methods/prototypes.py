"""Base class of methods with one prototype per category on the class feature."""

from __future__ import annotations

from typing import ClassVar, Protocol

from torch import Tensor

from newkind.methods.heads import CosineClassifier, LinearClassifier
from newkind.methods.method import Method

__all__ = ["PrototypeMethod"]


class HasTemperature(Protocol):
    """A config with the temperature of the softmax over logits."""

    @property
    def temperature(self) -> float:
        """Temperature, larger than 0."""


class PrototypeMethod(Method):
    """A classifier with K prototypes that start at random.

    Subclasses set `classifier` in their constructor.
    """

    spare_prototypes: ClassVar[bool] = True
    config: HasTemperature
    classifier: CosineClassifier | LinearClassifier

    @property
    def temperature(self) -> float:
        return self.config.temperature

    def logits(self, features: Tensor) -> Tensor:
        return self.classifier(features)  # type: ignore[no-any-return]

    def merge_categories(self, groups: list[list[int]], sizes: list[int]) -> None:
        self.classifier.merge(groups, sizes)
        self.n_categories = len(groups)
