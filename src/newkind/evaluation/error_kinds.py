"""The paper's four kinds of wrong predictions ('Error Analysis Details')."""

from __future__ import annotations

from dataclasses import dataclass

from newkind.evaluation.matching import Matching

__all__ = ["ErrorKinds"]


@dataclass(frozen=True, kw_only=True)
class ErrorKinds:
    """Wrong predictions as shares of all samples; the four add up to 1 - accuracy.

    The second word is what was predicted, the first whether that much was right: none of them is a success.
    A sample in a cluster that is matched to no class counts as predicted New.
    """

    true_old: float
    """Of an Old class, taken for another Old class."""
    false_new: float
    """Of an Old class, taken for a New one."""
    false_old: float
    """Of a New class, taken for an Old one."""
    true_new: float
    """Of a New class, taken for another New class."""

    @classmethod
    def of(cls, matching: Matching) -> ErrorKinds:
        n_correct, is_old, cluster_is_old = matching.n_correct, matching.is_old, matching.cluster_is_old
        n_samples = int(matching.counts.sum())
        of_old = matching.counts[is_old].sum(axis=0)  # (K,)
        of_new = matching.counts[~is_old].sum(axis=0)  # (K,)
        return cls(
            true_old=float(of_old[cluster_is_old].sum() - n_correct[is_old].sum()) / n_samples,
            false_new=float(of_old[~cluster_is_old].sum()) / n_samples,
            false_old=float(of_new[cluster_is_old].sum()) / n_samples,
            true_new=float(of_new[~cluster_is_old].sum() - n_correct[~is_old].sum()) / n_samples,
        )
