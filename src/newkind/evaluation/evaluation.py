"""All scores of a labelling at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from newkind.evaluation.accuracy import Accuracy, ari, nmi
from newkind.evaluation.by_name import match_by_name
from newkind.evaluation.calibration import calibration_error
from newkind.evaluation.distribution import ClassRow, Distribution, class_table
from newkind.evaluation.error_kinds import ErrorKinds
from newkind.evaluation.matching import Matching, match
from newkind.evaluation.novelty import novelty_auroc

__all__ = ["Evaluation", "SureScores", "evaluate"]


@dataclass(frozen=True)
class SureScores:
    """Scores of the samples that are confident enough.

    Parameters
    ----------
    coverage : float
        Share of samples that are confident enough.
    accuracy, by_name : float or None
        Share of correct ones among them, under the matching of all samples and by name; None if there is none.

    Examples
    --------
    >>> SureScores(coverage=0.8, accuracy=0.95, by_name=0.94).coverage
    0.8
    """

    coverage: float
    accuracy: float | None
    by_name: float | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Evaluation:
    """Scores of predictions whose true classes are known.

    Parameters
    ----------
    n_samples : int
        Number of scored samples.
    accuracy : Accuracy
        Accuracy under the best matching of all clusters and classes.
    by_name : Accuracy or None
        Accuracy where known classes count only under their own name; None if classes and clusters are not of one kind.
    novelty_auroc : float or None
        Area under the ROC curve of the novelty; None if no novelty was given, or all samples are Old or all New.
    calibration_error : float or None
        Expected calibration error of the confidence against correctness by name; None if no confidence was given.
    sure : SureScores or None
        Scores of the samples that are confident enough; None if all are.
    errors : ErrorKinds
        Kinds of errors under the best matching.
    nmi, ari : float
        Normalised mutual information and adjusted Rand index.
    classes : tuple of ClassRow
        Every class with its cluster and its accuracy.
    distribution : Distribution
        True and predicted sizes.
    matching : Matching
        Confusion matrix and best matching; not part of `to_dict`.
    """

    n_samples: int
    accuracy: Accuracy
    by_name: Accuracy | None
    novelty_auroc: float | None
    calibration_error: float | None
    sure: SureScores | None
    errors: ErrorKinds
    nmi: float
    ari: float
    classes: tuple[ClassRow, ...]
    distribution: Distribution
    matching: Matching

    def to_dict(self) -> dict[str, Any]:
        """Return the scores as plain lists, dictionaries and numbers, ready for JSON.

        Returns
        -------
        dict
            The scores; a score that does not exist (nan) is None.
        """
        distribution = self.distribution
        return {
            "n_samples": self.n_samples,
            "n_classes": len(self.classes),
            "n_active_clusters": distribution.n_active_clusters,
            "accuracy": _without_nan(self.accuracy),
            "by_name": None if self.by_name is None else _without_nan(self.by_name),
            "novelty_auroc": self.novelty_auroc,
            "calibration_error": self.calibration_error,
            "sure": None if self.sure is None else asdict(self.sure),
            "errors": asdict(self.errors),
            "nmi": self.nmi,
            "ari": self.ari,
            "distribution": {name: list(shares) for name, shares in asdict(distribution).items()},
            "classes": [asdict(row) for row in self.classes],
        }


def evaluate(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    is_old: ArrayLike,
    class_names: Sequence[str] | None = None,
    *,
    n_known: int | None = None,
    known_names: Sequence[str] | None = None,
    novelty: ArrayLike | None = None,
    confidence: ArrayLike | None = None,
    is_sure: ArrayLike | None = None,
) -> Evaluation:
    """Compute all scores of predictions on all unlabelled samples.

    Parameters
    ----------
    y_true, y_pred : array-like of int or str, shape (n_samples,)
        True classes and predicted categories of the unlabelled samples.
    is_old : array-like of bool, shape (n_samples,)
        Whether the true class is one of the known classes.
    class_names : sequence of str, optional
        `class_names[i]` is the name of class i. Default: the label itself.
    n_known, known_names : int and sequence of str, optional
        Known classes for the accuracy by name (see `by_name`): their number for integer labels, their names for strings.
    novelty, confidence, is_sure : array-like of shape (n_samples,), optional
        Novelty of each sample, probability of its predicted category, and whether that is high enough (for `sure`).

    Returns
    -------
    Evaluation

    Raises
    ------
    DataError
        As for `match`, `class_table` and `by_name`.

    Examples
    --------
    >>> found = evaluate([0, 0, 1, 1], [0, 2, 2, 2], [True, True, False, False], ["owl", "wren"], n_known=1)
    >>> found.accuracy.all, found.by_name.old, found.by_name.new, found.errors.false_new
    (0.75, 0.5, 1.0, 0.25)
    """
    matching = match(y_true, y_pred, is_old)
    true, pred = matching.samples()
    comparable = (matching.classes.dtype.kind == "U") == (matching.clusters.dtype.kind == "U")
    named = match_by_name(matching, n_known=n_known, known_names=known_names) if comparable else None
    return Evaluation(
        n_samples=len(true),
        accuracy=Accuracy.of(matching),
        by_name=None if named is None else Accuracy.of(named),
        novelty_auroc=_novelty_auroc(is_old, novelty),
        calibration_error=_calibration_error(named, y_true, y_pred, confidence),
        sure=_sure_scores(matching, named, y_true, y_pred, is_sure),
        errors=ErrorKinds.of(matching),
        nmi=nmi(true, pred),
        ari=ari(true, pred),
        classes=class_table(matching, class_names),
        distribution=Distribution.of(matching),
        matching=matching,
    )


def _novelty_auroc(is_old: ArrayLike, novelty: ArrayLike | None) -> float | None:
    """AUROC of the novelty (n_samples,); None without novelty, or if all samples are Old or all New."""
    old = np.asarray(is_old, dtype=bool)
    return None if novelty is None or old.all() or not old.any() else novelty_auroc(old, novelty)


def _calibration_error(
    named: Matching | None, y_true: ArrayLike, y_pred: ArrayLike, confidence: ArrayLike | None
) -> float | None:
    """Calibration error of the confidence (n_samples,) against correctness by name; None if either is missing."""
    if named is None or confidence is None:
        return None
    return calibration_error(confidence, named.is_correct(y_true, y_pred))


def _sure_scores(
    matching: Matching, named: Matching | None, y_true: ArrayLike, y_pred: ArrayLike, is_sure: ArrayLike | None
) -> SureScores | None:
    """Scores of the sure samples (n_samples,) under the matchings of all samples; None if it is not known which are sure."""
    if is_sure is None:
        return None
    sure = np.asarray(is_sure, dtype=bool)
    shares = [
        None if found is None or not sure.any() else float(found.is_correct(y_true, y_pred)[sure].mean())
        for found in (matching, named)
    ]
    return SureScores(float(sure.mean()), *shares)


def _without_nan(scores: Accuracy) -> dict[str, float | None]:
    return {name: None if isnan(value) else value for name, value in asdict(scores).items()}
