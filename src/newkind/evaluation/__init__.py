"""How good a discovery is, where the truth is known. Every score comes from one matching over all samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import isnan
from typing import Any

from numpy.typing import ArrayLike

from newkind.evaluation.accuracy import Accuracy, accuracy, ari, nmi
from newkind.evaluation.distribution import ClassRow, Distribution, class_table
from newkind.evaluation.error_kinds import ErrorKinds
from newkind.evaluation.matching import Matching, match

__all__ = [
    "Accuracy",
    "ClassRow",
    "Distribution",
    "ErrorKinds",
    "Evaluation",
    "Matching",
    "accuracy",
    "ari",
    "class_table",
    "evaluate",
    "match",
    "nmi",
]


@dataclass(frozen=True, kw_only=True, eq=False)
class Evaluation:
    """All that can be said about predictions when the truth is known."""

    n_samples: int
    accuracy: Accuracy
    errors: ErrorKinds
    nmi: float
    ari: float
    classes: tuple[ClassRow, ...]
    distribution: Distribution
    matching: Matching
    """The confusion matrix and the matching behind all of it; not part of `to_dict`."""

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, dicts and numbers, ready for JSON; a score that does not exist (nan) is None."""
        distribution = self.distribution
        return {
            "n_samples": self.n_samples,
            "n_classes": len(self.classes),
            "n_active_clusters": distribution.n_active_clusters,
            "accuracy": {name: None if isnan(value) else value for name, value in asdict(self.accuracy).items()},
            "errors": asdict(self.errors),
            "nmi": self.nmi,
            "ari": self.ari,
            "distribution": {name: list(shares) for name, shares in asdict(distribution).items()},
            "classes": [asdict(row) for row in self.classes],
        }


def evaluate(
    y_true: ArrayLike, y_pred: ArrayLike, is_old: ArrayLike, class_names: Sequence[str] | None = None
) -> Evaluation:
    """Every score of predictions on all unlabelled samples, from one matching.

    y_true, y_pred: (N,) whole numbers or strings; is_old: (N,) bool; class_names: the name of class i at place i.
    """
    matching = match(y_true, y_pred, is_old)
    true, pred = matching.samples()
    return Evaluation(
        n_samples=len(true),
        accuracy=Accuracy.of(matching),
        errors=ErrorKinds.of(matching),
        nmi=nmi(true, pred),
        ari=ari(true, pred),
        classes=class_table(matching, class_names),
        distribution=Distribution.of(matching),
        matching=matching,
    )
