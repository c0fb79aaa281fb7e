"""Growing categories: candidates of each one, and the answers given so far."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from newkind.review.growth import Growth
from newkind.review.snapshot import Snapshot

__all__ = ["GrowthSession", "Growths", "rank_candidates"]

MOST_SESSIONS = 64
Lines = NDArray[np.int64]


def rank_candidates(snapshot: Snapshot, k: int) -> Lines:
    """Undecided images that may belong to a category, the most likely first.

    They are ranked by the probability of the category plus the similarity to its centre. Images that were said not to belong
    to it are left out.
    """
    answer, category = snapshot.answer, snapshot.categories[k].id
    lines = np.flatnonzero(~snapshot.is_decided)
    if answer.rejected:
        rejected = {line for line, ids in answer.rejected.items() if category in ids}
        lines = lines[~np.isin(lines, list(rejected))]
    probability = np.where(answer.category[lines] == k, answer.confidence[lines], 0.0)
    probability = probability + np.where(answer.second[lines] == k, answer.second_confidence[lines], 0.0)
    centre = snapshot.centre(k)
    if centre is not None and snapshot.space is not None:
        probability = probability + snapshot.space.similarity(lines, centre)
    else:
        lines, probability = lines[probability > 0], probability[probability > 0]
    return lines[np.argsort(-probability, kind="stable")]


@dataclass(eq=False)
class GrowthSession:
    """One growth in progress.

    Parameters
    ----------
    category : str
        Id of the category.
    candidates : ndarray of int64
        Ranked rows.
    growth : Growth
        The procedure.
    number : int
        Number of the last event that is part of it.
    page : int, default=0
        Number of pages that were answered.
    """

    category: str
    candidates: Lines
    growth: Growth
    number: int
    page: int = 0

    @property
    def shown(self) -> list[int]:
        """Rows of the page that is shown."""
        return [int(line) for line in self.candidates[self.growth.shown]] if self.growth.phase != "done" else []

    @property
    def unlooked(self) -> list[int]:
        """Accepted rows that nobody looked at."""
        accepted = self.growth.accepted
        return [int(line) for line in self.candidates[accepted[~self.growth.right[accepted]]]]

    def answer(self, wrong: set[int]) -> None:
        """Record which of the shown rows do not belong to the category."""
        ranks = [int(rank) for rank in self.growth.shown if int(self.candidates[rank]) in wrong]
        self.growth.answer(ranks)
        self.page += 1


class Growths:
    """Growths in progress, by an id that the page keeps. They end with the server; recorded answers stay."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[str, GrowthSession] = OrderedDict()
        self._lock = threading.Lock()

    def start(self, key: str, snapshot: Snapshot, k: int) -> GrowthSession:
        """Start growing a category."""
        candidates = rank_candidates(snapshot, k)
        seed = int.from_bytes(np.random.SeedSequence().generate_state(1).tobytes(), "little")
        session = GrowthSession(
            snapshot.categories[k].id, candidates, Growth(len(candidates), seed=seed), snapshot.number
        )
        with self._lock:
            self._sessions[key] = session
            while len(self._sessions) > MOST_SESSIONS:
                self._sessions.popitem(last=False)
        return session

    def get(self, key: str) -> GrowthSession | None:
        """Growth in progress; None if there is none of this id."""
        with self._lock:
            return self._sessions.get(key)

    def end(self, key: str) -> None:
        """Forget a growth."""
        with self._lock:
            self._sessions.pop(key, None)
