"""Dividing what the token cache lacks among the processes of all machines.

Images are computed in groups of neighbours, which do not depend on the number of processes: the last bit of a result can
depend on the size of a group. Every image is computed once, on the disk where it stays.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from newkind.backbone.cache_plan import CachePlan
from newkind.backbone.disks import Disks
from newkind.data import Collection

__all__ = ["Division", "divide"]

COMPLETE, ANY = -2, -1
"""In place of the disk of an image: nothing is missing, or it has no disk yet."""
MOST_AT_HOME = 1.5
"""Largest work of a process, relative to the mean, that is left where other views of the same images are. Beyond that, others
help, and compute those views again."""


@dataclass(frozen=True, eq=False)
class Division:
    """What all processes together have to compute, and what this one does.

    Parameters
    ----------
    plans : list of CachePlan
        With `todo` of all processes together.
    groups : list of list of int
        Images that this process computes, in groups that go through the trunk together.
    disks : Disks
        Disks of the processes.
    """

    plans: list[CachePlan]
    groups: list[list[int]]
    disks: Disks

    @property
    def n_images(self) -> int:
        """Number of images that miss at least one view, over all processes."""
        return len(set[int]().union(*(plan.todo for plan in self.plans)))


def divide(collection: Collection, plans: Sequence[CachePlan], disks: Disks | None = None) -> Division:
    """Divide what plans lack among the processes; all of them have to ask.

    An image of which some views are on a disk is completed there, unless that disk has much more than its share to do. All
    others are dealt out, class by class, so that every disk gets its share of every class.

    Parameters
    ----------
    collection : Collection
        Images, the same in every process.
    plans : sequence of CachePlan
        What is missing on the disk of this process, as planned by `plan_cache`. All have the same digests.
    disks : Disks, optional
        Disks of the processes. Default: one process.

    Returns
    -------
    Division
    """
    disks = disks or Disks()
    contents = _different_contents(plans[0].digests)  # (U,)
    stored = np.array([disks.gather_masks(~np.isin(contents, plan.todo)) for plan in plans])  # (P, D, U)
    n_stored = stored.sum(axis=0)  # (D, U)
    home = np.where(n_stored.max(axis=0) > 0, n_stored.argmax(axis=0), ANY)
    home[n_stored.max(axis=0) == len(plans)] = COMPLETE
    labels = np.asarray(collection.catalog.labels)[contents]
    dealt = _deal(_groups(home, plans[0].key.group), labels, disks)
    todo: list[list[int]] = [[] for _ in plans]
    for group, rank in dealt:
        for images, is_stored in zip(todo, stored[:, disks.of_process[rank]], strict=True):
            images += contents[[place for place in group if not is_stored[place]]].tolist()
    shared = [replace(plan, todo=sorted(images)) for plan, images in zip(plans, todo, strict=True)]
    return Division(shared, [contents[group].tolist() for group, rank in sorted(dealt) if rank == disks.rank], disks)


def _different_contents(digests: Sequence[bytes]) -> NDArray[np.int64]:
    """The first image of every content that can be read, ascending."""
    first: dict[bytes, int] = {}
    for i, digest in enumerate(digests):
        if digest:
            first.setdefault(digest, i)
    return np.fromiter(first.values(), dtype=np.int64, count=len(first))


def _groups(home: NDArray[np.integer], size: int) -> list[tuple[list[int], int]]:
    """Neighbours that are incomplete and have the same home, as numbers of contents."""
    found: dict[tuple[int, int], list[int]] = defaultdict(list)
    for place in np.flatnonzero(home != COMPLETE).tolist():
        found[place // size, int(home[place])].append(place)
    return [(group, disk) for (_, disk), group in found.items()]


def _deal(
    groups: list[tuple[list[int], int]], labels: NDArray[np.integer], disks: Disks
) -> list[tuple[list[int], int]]:
    """The process of each group; the one with least to do, on the home of the group if it has one."""
    turns, work = disks.turns, Counter[int]()
    homes = {disk: [rank for rank in turns if disks.of_process[rank] == disk] for disk in set(disks.of_process)}
    most = MOST_AT_HOME * len(groups) / len(turns)
    dealt = []
    for group, disk in sorted(groups, key=lambda item: (item[1] == ANY, int(labels[item[0][0]]), item[0])):
        rank = min(homes.get(disk, turns), key=work.__getitem__)
        if work[rank] >= most:
            rank = min(turns, key=work.__getitem__)
        work[rank] += 1
        dealt.append((group, rank))
    return dealt
