"""Scores of a run after decisions, where true classes are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from newkind.evaluation import evaluate
from newkind.report.contents import RunContents
from newkind.report.images import RunImages
from newkind.runs.answer import LABELLED
from newkind.runs.current_answer import model_answer

__all__ = ["rescored"]


def rescored(contents: RunContents, images: RunImages) -> RunContents:
    """Contents with the scores of the current answer; unchanged without decisions or without true classes.

    Parameters
    ----------
    contents : RunContents
        The run.
    images : RunImages
        Its images, for the true classes.

    Returns
    -------
    RunContents
    """
    if not contents.n_decisions or images.truth is None:
        return contents
    answer = model_answer(contents.run)
    labelled = {answer.files[i] for i in np.flatnonzero(answer.status == LABELLED)}
    scored = (images.truth >= 0) & np.array([name not in labelled for name in contents.files], dtype=bool)
    if not scored.any():
        return contents
    # A category that was a known class has the number of that class, as `evaluate` expects; others have larger numbers.
    known = {name: c for c, name in enumerate(images.class_names[: images.n_old])}
    n_classes = len(images.class_names)
    cluster = [known.get(category.id, n_classes + k) for k, category in enumerate(contents.categories)]
    number = {c: k for k, c in enumerate(cluster)}
    true = images.truth[scored].astype(np.int64)
    found = evaluate(
        true,
        np.array(cluster, dtype=np.int64)[contents.category[scored]],
        true < images.n_old,
        images.class_names,
        n_known=images.n_old,
        confidence=contents.confidence[scored],
    ).to_dict()
    classes = [row | {"cluster": number.get(row["cluster"])} for row in found["classes"]]
    return replace(contents, scores=found | {"classes": classes})
