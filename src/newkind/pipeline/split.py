"""Propose how to split a category of a run."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional as F

from newkind.clustering.split import propose_split
from newkind.errors import RunError
from newkind.methods.frame import Frame
from newkind.runs.answer import APPROVED, LABELLED, Answer
from newkind.runs.run import Run

__all__ = ["propose_groups"]

SHRINKAGE = 0.3


def propose_groups(run: Run, answer: Answer, category: str, *, n: int | None = None) -> tuple[tuple[str, ...], ...]:
    """Groups of images that a category could be split into.

    Images are compared in a frame in which the labelled classes are round, as `modern` does, so that parts differ by what
    makes classes differ rather than by pose or background.

    Parameters
    ----------
    run : Run
        A finished run.
    answer : Answer
        Its current answer.
    category : str
        Id or name of the category.
    n : int, optional
        Number of groups. Default: 2, or up to 6 where they are clearly apart.

    Returns
    -------
    tuple of tuple of str
        Names of the images of each group, the largest group first.

    Raises
    ------
    RunError
        With the code `no-features` if the run has none.
    """
    features = run.features()
    rows = answer.members(answer.find(category).id)
    if features is None or len(features) != len(answer):
        raise RunError(
            f"{run.folder} has no features to split a category by.",
            fix="Name the images of each part with `group`.",
            code="no-features",
            folder=run.folder,
        )
    x = torch.from_numpy(np.asarray(features, dtype=np.float32))
    known = np.isin(answer.status, (LABELLED, APPROVED)) & (answer.category >= 0)
    labels = torch.from_numpy(np.where(known, answer.category, -1))
    z = Frame(x.shape[1]).fit(x, labels, shrinkage=SHRINKAGE) if known.any() else F.normalize(x, dim=1)
    return tuple(tuple(answer.files[i] for i in rows[part]) for part in propose_split(z[rows].numpy(), n))
