"""Class by class: how many samples there are, how many were predicted, and how the two distributions compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from newkind.errors import DataError
from newkind.evaluation.matching import Matching

__all__ = ["ClassRow", "Distribution", "class_table"]


@dataclass(frozen=True, kw_only=True)
class ClassRow:
    """One true class and the cluster that was matched to it."""

    label: int | str
    name: str
    is_old: bool
    n_true: int
    n_predicted: int
    """All samples in the matched cluster, right or wrong; 0 without one."""
    cluster: int | str | None
    """The matched cluster as y_pred calls it."""
    accuracy: float


def class_table(matching: Matching, class_names: Sequence[str] | None = None) -> tuple[ClassRow, ...]:
    """A row a class that occurs, by label. `class_names[label]` names a class; without it the label does."""
    labels = matching.classes.tolist()
    if class_names is not None:
        if matching.classes.dtype.kind == "U":
            raise DataError("class_names are for numbered classes, but y_true holds strings.", fix="Leave them out.")
        if labels[-1] >= len(class_names):
            raise DataError(f"y_true goes up to {labels[-1]}, but there are only {len(class_names)} class names.")
    clusters = matching.clusters.tolist()
    n_true, n_correct, n_predicted = (
        matching.n_true.tolist(),
        matching.n_correct.tolist(),
        matching.n_predicted.tolist(),
    )
    return tuple(
        ClassRow(
            label=label,
            name=str(label) if class_names is None else class_names[label],
            is_old=bool(matching.is_old[i]),
            n_true=n_true[i],
            n_predicted=0 if j < 0 else n_predicted[j],
            cluster=None if j < 0 else clusters[j],
            accuracy=n_correct[i] / n_true[i],
        )
        for i, (label, j) in enumerate(zip(labels, matching.cluster_of_class.tolist(), strict=True))
    )


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """Sizes of classes and of clusters as shares of all samples, the largest first.

    True and predicted add up to 1 each, Old and New together. A cluster is Old if it is matched to an Old class;
    one that is matched to no class is New.
    """

    true_old: tuple[float, ...]
    true_new: tuple[float, ...]
    predicted_old: tuple[float, ...]
    predicted_new: tuple[float, ...]

    @property
    def true(self) -> tuple[float, ...]:
        return tuple(sorted(self.true_old + self.true_new, reverse=True))

    @property
    def predicted(self) -> tuple[float, ...]:
        return tuple(sorted(self.predicted_old + self.predicted_new, reverse=True))

    @property
    def n_active_clusters(self) -> int:
        """Clusters that hold at least one sample."""
        return len(self.predicted_old) + len(self.predicted_new)

    @classmethod
    def of(cls, matching: Matching) -> Distribution:
        n_true, n_predicted = matching.n_true, matching.n_predicted
        return cls(
            true_old=_shares(n_true, matching.is_old),
            true_new=_shares(n_true, ~matching.is_old),
            predicted_old=_shares(n_predicted, matching.cluster_is_old),
            predicted_new=_shares(n_predicted, ~matching.cluster_is_old),
        )


def _shares(sizes: NDArray[np.int64], chosen: NDArray[np.bool_]) -> tuple[float, ...]:
    return tuple((np.sort(sizes[chosen])[::-1] / sizes.sum()).tolist())
