"""Growing a category: which ranked candidates to show next, where to cut, and how pure the accepted ones are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from newkind.review.purity import looks_needed, wrong_at_most

__all__ = ["Growth", "PurityBound"]

TOLERATED = 0.1  # A page with a larger share of wrong images is beyond the end of the category.
PRECISION = 0.05  # Bisection ends when it could gain at most this share of the candidates before the cut.
FIRST_SHARE = (
    0.8  # Share of the error probability for the first sample; each further sample gets a fifth of the one before.
)


@dataclass(frozen=True)
class PurityBound:
    """Statement about the accepted images.

    Parameters
    ----------
    n_images : int
        Number of accepted images, without those found to be wrong.
    n_looks : int
        Number of images that were looked at.
    purity : float
        Lower limit of the share of right images.
    confidence : float
        Confidence of the limit.
    """

    n_images: int
    n_looks: int
    purity: float
    confidence: float


@dataclass
class Growth:
    """Procedure that finds how many of the ranked candidates belong to a category, and shows how pure they are.

    Pages of consecutive candidates are shown at ranks that double until a page has too many wrong images; then the cut is
    found by bisection. A random sample of all candidates before the cut that were not looked at yet decides on the purity.
    If too many of the sample are wrong, the cut moves forward and a fresh sample is drawn.

    Parameters
    ----------
    n_candidates : int
        Number of ranked candidates, the most likely first.
    page : int, default=12
        Number of images per page.
    purity : float, default=0.95
        Purity to show.
    confidence : float, default=0.95
        Confidence with which to show it.
    seed : int, default=0
        Seed of the random samples.
    """

    n_candidates: int
    page: int = 12
    purity: float = 0.95
    confidence: float = 0.95
    seed: int = 0
    phase: str = field(default="double", init=False)
    cut: int = field(default=0, init=False)
    shown: NDArray[np.int64] = field(init=False)
    right: NDArray[np.bool_] = field(init=False)
    wrong: NDArray[np.bool_] = field(init=False)
    _reach: int = field(default=0, init=False)
    _high: int = field(default=0, init=False)
    _attempt: int = field(default=0, init=False)
    _population: int = field(default=0, init=False)
    _sample: NDArray[np.int64] = field(init=False)
    _rng: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.right, self.wrong = np.zeros((2, self.n_candidates), dtype=bool)
        self._sample = np.zeros(0, dtype=np.int64)
        self._rng = np.random.default_rng(self.seed)
        self._reach = self.page
        self._show_probe()

    @property
    def n_looks(self) -> int:
        """Number of candidates that were looked at."""
        return int((self.right | self.wrong).sum())

    @property
    def accepted(self) -> NDArray[np.int64]:
        """Ranks of the candidates before the cut, and of those behind it that were found to be right."""
        inside = np.arange(self.n_candidates) < self.cut
        return np.flatnonzero((inside | self.right) & ~self.wrong)

    @property
    def looks_left(self) -> int:
        """Number of images of the present sample that are not shown yet or not answered; 0 before the sample is drawn."""
        return 0 if self.phase != "sample" else int((~(self.right | self.wrong)[self._sample]).sum())

    def answer(self, wrong: Iterable[int]) -> None:
        """Record the answer about the page that is shown, and choose the next page.

        Parameters
        ----------
        wrong : iterable of int
            Ranks of the shown candidates that do not belong to the category.
        """
        if self.phase == "done":
            return
        bad = np.isin(self.shown, list(wrong))
        self.wrong[self.shown[bad]] = True
        self.right[self.shown[~bad]] = True
        if self.phase == "double":
            self._after_doubling()
        elif self.phase == "bisect":
            self._after_bisection()
        else:
            self._after_sample()

    def bound(self) -> PurityBound:
        """Bound on the purity of the accepted images; meaningful when the phase is "done"."""
        accepted = self.accepted
        n_looked = int(self.right[accepted].sum())
        unknown = len(accepted) - n_looked
        most = 0
        if unknown:
            looked = (self.right | self.wrong)[self._sample]
            x = int(self.wrong[self._sample].sum())
            most = wrong_at_most(self._population, int(looked.sum()), x, self._sample_confidence) - x
        purity = 1.0 if not len(accepted) else 1 - most / len(accepted)
        return PurityBound(len(accepted), self.n_looks, purity, self.confidence)

    @property
    def _sample_confidence(self) -> float:
        """Confidence of one sample: the error probabilities of all samples that can follow sum to 1 - confidence."""
        return 1 - (1 - self.confidence) * FIRST_SHARE * (1 - FIRST_SHARE) ** (self._attempt - 1)

    def _show_probe(self) -> None:
        """Show the page that ends at the present reach."""
        end = min(self._reach, self.n_candidates)
        self.shown = np.arange(max(end - self.page, 0), end)
        if not len(self.shown):
            self.phase = "done"

    def _page_is_good(self) -> bool:
        return bool(self.wrong[self.shown].mean() <= TOLERATED)

    def _after_doubling(self) -> None:
        end = int(self.shown[-1]) + 1
        if not self._page_is_good():
            self._high = int(self.shown[0])
            self._bisect()
        elif end == self.n_candidates:
            self.cut = end
            self._draw_sample()
        else:
            self.cut = end
            self._reach *= 2
            self._show_probe()

    def _after_bisection(self) -> None:
        if self._page_is_good():
            self.cut = int(self.shown[-1]) + 1
        else:
            self._high = int(self.shown[0])
        self._bisect()

    def _bisect(self) -> None:
        """Show the page in the middle between the cut and the first bad page; without room for one, draw the sample."""
        if self._high - self.cut < max(self.page, int(PRECISION * self.cut)):
            self._draw_sample()
            return
        self.phase = "bisect"
        start = (self.cut + self._high - self.page) // 2
        self.shown = np.arange(start, start + self.page)

    def _draw_sample(self) -> None:
        """Draw a fresh sample of the candidates before the cut that nobody looked at."""
        self.phase = "sample"
        self._attempt += 1
        unknown = np.flatnonzero(~(self.right | self.wrong)[: self.cut])
        n_right = len(self.accepted) - len(unknown)
        self._population = len(unknown)
        n = looks_needed(len(unknown), n_right, purity=self.purity, confidence=self._sample_confidence)
        self._sample = self._rng.permutation(unknown)[:n]
        self._show_sample()

    def _show_sample(self) -> None:
        left = self._sample[~(self.right | self.wrong)[self._sample]]
        self.shown = np.sort(left[: self.page])
        if not len(left):
            self.phase = "done"

    def _after_sample(self) -> None:
        """Go through the sample; when it cannot show the purity any more, move the cut and draw a fresh sample."""
        x = int(self.wrong[self._sample].sum())
        most = wrong_at_most(self._population, len(self._sample), x, self._sample_confidence) - x
        if most <= (1 - self.purity) * len(self.accepted) + 1e-9:
            self._show_sample()
            return
        self.cut = self._better_cut()
        self._draw_sample()

    def _better_cut(self) -> int:
        """Largest cut before which at most half of the permitted share of the looked-at candidates was wrong."""
        looked = np.flatnonzero((self.right | self.wrong)[: self.cut])
        wrong = np.cumsum(self.wrong[looked])
        allowed = (1 - self.purity) / 2 * np.arange(1, len(looked) + 1)
        good = np.flatnonzero(wrong <= allowed)
        if not len(good):
            return 0
        last = int(good[-1])
        return int(looked[last + 1]) if last + 1 < len(looked) else self.cut
