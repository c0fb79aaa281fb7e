"""True and predicted sizes of classes, one by one and as distributions."""

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
    """A true class and the cluster that is matched to it.

    Parameters
    ----------
    label : int or str
        Label of the class, as given.
    name : str
        Name of the class.
    is_old : bool
        Whether it is an Old (known) class.
    n_true : int
        Number of its samples.
    n_predicted : int
        Number of all samples in the matched cluster, correct or not; 0 without a cluster.
    cluster : int, str or None
        Label of the matched cluster, as given.
    accuracy : float
        Fraction of its samples that are in the matched cluster.
    """

    label: int | str
    name: str
    is_old: bool
    n_true: int
    n_predicted: int
    cluster: int | str | None
    accuracy: float


def class_table(matching: Matching, class_names: Sequence[str] | None = None) -> tuple[ClassRow, ...]:
    """Describe every class that occurs, in the order of labels.

    Parameters
    ----------
    matching : Matching
        Counts and pairing, from `match`.
    class_names : sequence of str, optional
        `class_names[label]` is the name of a class. Default: the label itself.

    Returns
    -------
    tuple of ClassRow
        One row per class.

    Raises
    ------
    DataError
        `class-names-unexpected` if classes are strings, `class-names-missing` if there are too few names.

    Examples
    --------
    >>> from newkind.evaluation import match
    >>> [row] = class_table(match([0, 0], [7, 8], [True, True]), ["owl"])
    >>> row.name, row.cluster, row.accuracy
    ('owl', 7, 0.5)
    """
    labels = matching.classes.tolist()
    if class_names is not None:
        if matching.classes.dtype.kind == "U":
            raise DataError(
                "`class_names` is for classes that are integers, but `y_true` contains strings.",
                fix="Omit `class_names`.",
                code="class-names-unexpected",
            )
        if labels[-1] >= len(class_names):
            raise DataError(
                f"The largest class in `y_true` is {labels[-1]}, but `class_names` has only {len(class_names)} entries.",
                code="class-names-missing",
                largest=labels[-1],
                n_names=len(class_names),
            )
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
    """Sizes of classes and clusters as fractions of all samples, in descending order.

    The true sizes add up to 1, Old and New together, and so do the predicted ones. A cluster is Old if it is matched to an
    Old class; a cluster that is matched to no class is New.

    Parameters
    ----------
    true_old, true_new : tuple of float
        Sizes of the Old and the New classes.
    predicted_old, predicted_new : tuple of float
        Sizes of the Old and the New clusters.

    Examples
    --------
    >>> from newkind.evaluation import match
    >>> sizes = Distribution.of(match([0, 0, 0, 1], [5, 5, 6, 6], [True, True, True, False]))
    >>> sizes.true_old, sizes.predicted_old, sizes.predicted_new
    ((0.75,), (0.5,), (0.5,))
    """

    true_old: tuple[float, ...]
    true_new: tuple[float, ...]
    predicted_old: tuple[float, ...]
    predicted_new: tuple[float, ...]

    @property
    def true(self) -> tuple[float, ...]:
        """Sizes of all classes, in descending order."""
        return tuple(sorted(self.true_old + self.true_new, reverse=True))

    @property
    def predicted(self) -> tuple[float, ...]:
        """Sizes of all clusters, in descending order."""
        return tuple(sorted(self.predicted_old + self.predicted_new, reverse=True))

    @property
    def n_active_clusters(self) -> int:
        """Number of clusters with at least one sample."""
        return len(self.predicted_old) + len(self.predicted_new)

    @classmethod
    def of(cls, matching: Matching) -> Distribution:
        """Compute the sizes under a matching.

        Parameters
        ----------
        matching : Matching
            Counts and pairing, from `match`.

        Returns
        -------
        Distribution
            Sizes as fractions of all samples.
        """
        n_true, n_predicted = matching.n_true, matching.n_predicted
        return cls(
            true_old=_shares(n_true, matching.is_old),
            true_new=_shares(n_true, ~matching.is_old),
            predicted_old=_shares(n_predicted, matching.cluster_is_old),
            predicted_new=_shares(n_predicted, ~matching.cluster_is_old),
        )


def _shares(sizes: NDArray[np.int64], chosen: NDArray[np.bool_]) -> tuple[float, ...]:
    """Chosen sizes as fractions of the sum of all sizes (n,), in descending order."""
    return tuple((np.sort(sizes[chosen])[::-1] / sizes.sum()).tolist())
