"""Exact bound on the purity of a set of which some images were looked at."""

from __future__ import annotations

from math import exp, lgamma

__all__ = ["looks_needed", "wrong_at_most"]


def wrong_at_most(n_images: int, n_looked: int, n_wrong: int, confidence: float) -> int:
    """Upper confidence limit on the number of wrong images in a set of which a random sample was looked at.

    If W of N images are wrong, the number X of wrong ones among n images drawn without replacement is hypergeometric. The
    limit is the largest W for which a sample as good as the one seen, X <= x, has a probability above 1 - confidence.
    Whatever the true W is, the limit is below it with a probability of at most 1 - confidence.

    Parameters
    ----------
    n_images : int
        Number of images N.
    n_looked : int
        Number n of images in the random sample.
    n_wrong : int
        Number x of wrong images in the sample.
    confidence : float
        Confidence, between 0 and 1.

    Returns
    -------
    int
        Including the wrong images of the sample.

    Examples
    --------
    >>> wrong_at_most(60, 31, 0, 0.95)
    3
    """
    low, high = n_wrong, n_images - (n_looked - n_wrong)
    while low < high:
        middle = (low + high + 1) // 2
        if _at_most(n_wrong, n_images, middle, n_looked) > 1 - confidence:
            low = middle
        else:
            high = middle - 1
    return low


def looks_needed(n_images: int, n_right: int, *, purity: float, confidence: float) -> int:
    """Smallest random sample that shows a purity, if every image of the sample is right.

    Parameters
    ----------
    n_images : int
        Number of images to sample from.
    n_right : int
        Number of images in the set that were looked at before and are right.
    purity : float
        Purity to show for all `n_images + n_right` images, between 0 and 1.
    confidence : float
        Confidence, between 0 and 1.

    Returns
    -------
    int

    Examples
    --------
    >>> looks_needed(60, 0, purity=0.95, confidence=0.95)
    31
    >>> looks_needed(100_000, 0, purity=0.95, confidence=0.95)
    59
    """
    allowed = int((1 - purity) * (n_images + n_right) + 1e-9)
    low, high = 0, n_images
    while low < high:
        middle = (low + high) // 2
        if wrong_at_most(n_images, middle, 0, confidence) <= allowed:
            high = middle
        else:
            low = middle + 1
    return low


def _at_most(x: int, n_images: int, n_wrong: int, n_looked: int) -> float:
    """Probability of at most x wrong images in a sample without replacement."""
    least = max(0, n_looked - (n_images - n_wrong))
    total = _log_choose(n_images, n_looked)
    return sum(
        exp(_log_choose(n_wrong, i) + _log_choose(n_images - n_wrong, n_looked - i) - total)
        for i in range(least, min(x, n_wrong, n_looked) + 1)
    )


def _log_choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
