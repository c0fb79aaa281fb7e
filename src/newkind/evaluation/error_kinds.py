"""The four kinds of errors of the paper ("Error Analysis Details")."""

from __future__ import annotations

from dataclasses import dataclass

from newkind.evaluation.matching import Matching

__all__ = ["ErrorKinds"]


@dataclass(frozen=True, kw_only=True)
class ErrorKinds:
    """Kinds of errors as fractions of all samples; the four add up to 1 - accuracy.

    The second word says what was predicted, the first whether that much was right: `true_new` is a sample of a New class that
    was predicted as a New class, but the wrong one. A cluster that is matched to no class counts as New.

    Parameters
    ----------
    true_old : float
        Samples of an Old class in the cluster of another Old class.
    false_new : float
        Samples of an Old class in a New cluster.
    false_old : float
        Samples of a New class in the cluster of an Old class.
    true_new : float
        Samples of a New class in another New cluster.

    Examples
    --------
    >>> from newkind.evaluation import match
    >>> ErrorKinds.of(match([0, 0, 0, 1], [5, 5, 6, 6], [True, True, True, False]))
    ErrorKinds(true_old=0.0, false_new=0.25, false_old=0.0, true_new=0.0)
    """

    true_old: float
    false_new: float
    false_old: float
    true_new: float

    @classmethod
    def of(cls, matching: Matching) -> ErrorKinds:
        """Count the errors under a matching.

        Parameters
        ----------
        matching : Matching
            Counts and pairing, from `match`.

        Returns
        -------
        ErrorKinds
            Fractions of all samples.
        """
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
