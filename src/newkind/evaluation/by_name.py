"""Accuracy by name: a known class counts only in the category of its own name.

A matching may pair a known class with any cluster, as papers do. A user sees names: the images of the known class "owl" are
correct if they are in the category "owl". New classes have no name to be found under, so they are paired with the new
categories by the best matching.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from newkind.errors import ConfigError, DataError
from newkind.evaluation.accuracy import Accuracy
from newkind.evaluation.matching import Matching, best_pairing, match

__all__ = ["by_name", "match_by_name"]


def by_name(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    is_old: ArrayLike,
    *,
    n_known: int | None = None,
    known_names: Sequence[str] | None = None,
) -> Accuracy:
    """Accuracy where known classes count only under their own name.

    A sample of a known (Old) class is correct if its predicted category has the same label as its class. New classes are
    paired with the categories that are not known classes, one to one, so that as many samples as possible are correct.
    It is never above the accuracy under the best matching of all categories and classes (`accuracy`).

    Parameters
    ----------
    y_true : array-like of int or str, shape (n_samples,)
        True classes of the unlabelled samples.
    y_pred : array-like of int or str, shape (n_samples,)
        Predicted categories, of the same kind as `y_true`. A category that stands for a known class has its label.
    is_old : array-like of bool, shape (n_samples,)
        Whether the true class is a known one.
    n_known : int, optional
        Number of known classes, if labels are integers: the categories and classes 0 to `n_known` - 1 are known. Default:
        the Old classes in `y_true` are known. Give it if a known class may have no unlabelled sample, because its
        category would count as a new one otherwise.
    known_names : sequence of str, optional
        Names of the known classes, if labels are strings. Default: the Old classes in `y_true`.

    Returns
    -------
    Accuracy
        Fractions `all`, `old` and `new`, and their means over classes.

    Raises
    ------
    DataError
        As for `match`; `labels-not-comparable` if one of `y_true` and `y_pred` holds integers and the other strings;
        `known-classes-disagree` if an Old class is not known or a New class is.
    ConfigError
        `known-classes-kind` if `n_known` is given for strings or `known_names` for integers.

    Examples
    --------
    Known classes 0 and 1. All samples of class 0 are in category 1, and the other way round: right under the best matching,
    wrong by name. The new class 2 is in category 7.

    >>> y_true, y_pred = [0, 0, 1, 1, 2, 2], [1, 1, 0, 0, 7, 7]
    >>> is_old = [True, True, True, True, False, False]
    >>> found = by_name(y_true, y_pred, is_old, n_known=2)
    >>> found.old, found.new
    (0.0, 1.0)
    """
    return Accuracy.of(match_by_name(match(y_true, y_pred, is_old), n_known=n_known, known_names=known_names))


def match_by_name(
    matching: Matching, *, n_known: int | None = None, known_names: Sequence[str] | None = None
) -> Matching:
    """Pair known classes with the categories of their own label, and new classes with other categories.

    Parameters
    ----------
    matching : Matching
        Counts of classes and clusters, from `match`. Its own pairing is not used.
    n_known : int, optional
        As for `by_name`.
    known_names : sequence of str, optional
        As for `by_name`.

    Returns
    -------
    Matching
        The same counts with the pairing by name.

    Examples
    --------
    >>> found = match_by_name(match(["owl", "owl", "wren"], ["owl", "new-01", "new-01"], [True, True, False]))
    >>> found.clusters.tolist(), found.classes.tolist()
    (['new-01', 'owl'], ['owl', 'wren'])
    >>> found.cluster_of_class.tolist()
    [1, 0]
    """
    known = _known_labels(matching, n_known, known_names)
    classes, clusters = matching.classes, matching.clusters
    class_is_known, cluster_is_known = np.isin(classes, known), np.isin(clusters, known)
    wrong = np.flatnonzero(class_is_known != matching.is_old)
    if wrong.size:
        label, should = classes[wrong[0]], "Old" if matching.is_old[wrong[0]] else "New"
        raise DataError(
            f"Class {label} is {should} by `is_old`, but {'not ' if should == 'Old' else ''}one of the known classes.",
            code="known-classes-disagree",
            label=label.item(),
        )
    pairing = np.full(len(classes), -1, dtype=np.int64)
    own = np.minimum(np.searchsorted(clusters, classes), len(clusters) - 1)  # clusters are sorted
    found = class_is_known & (clusters[own] == classes)
    pairing[found] = own[found]
    others = np.flatnonzero(~cluster_is_known)
    if others.size and not class_is_known.all():
        best = best_pairing(matching.counts[np.ix_(~class_is_known, ~cluster_is_known)])
        pairing[~class_is_known] = np.where(best >= 0, others[best], -1)
    empty = matching.counts[np.arange(len(classes)), pairing] == 0
    return replace(matching, cluster_of_class=np.where(empty, -1, pairing))


def _known_labels(matching: Matching, n_known: int | None, known_names: Sequence[str] | None) -> NDArray[np.generic]:
    """Labels of the known classes, of the kind of the given labels."""
    are_names = matching.classes.dtype.kind == "U"
    if are_names != (matching.clusters.dtype.kind == "U"):
        raise DataError(
            "Accuracy by name needs classes and categories of one kind, integers or strings; got "
            f"{matching.classes.dtype} for `y_true` and {matching.clusters.dtype} for `y_pred`.",
            code="labels-not-comparable",
        )
    if (n_known is not None and are_names) or (known_names is not None and not are_names):
        given, kind = ("`n_known`", "integers") if are_names else ("`known_names`", "strings")
        raise ConfigError(f"{given} is for labels that are {kind}.", code="known-classes-kind")
    if n_known is not None:
        return np.arange(n_known)
    if known_names is not None:
        return np.asarray(list(known_names), dtype=np.str_)
    return matching.classes[matching.is_old]
