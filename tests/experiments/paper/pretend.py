"""Results of cells that were not run, to test tables and figures without training."""

import json

import numpy as np

from newkind.evaluation import evaluate
from newkind.experiments.cells import FORMAT, KEPT_SCORES, Cell
from newkind.experiments.paper.plan_study import StudyPlan


def pretend_cell(cell: Cell, plan: StudyPlan, seed: int) -> None:
    """Write the files of a finished cell, with the scores of random predictions."""
    rng = np.random.default_rng(seed)
    all_truth = cell.collection.truth
    assert all_truth is not None
    free = ~cell.collection.catalog.is_labelled
    truth, names = all_truth.labels[free], all_truth.class_names
    asked = cell.config.n_categories
    k = asked.number if asked.rule == "fixed" and asked.number else len(names)
    guess = np.where(rng.random(len(truth)) < 0.6, truth, rng.integers(0, k, len(truth)))
    n_known, sure = cell.collection.catalog.n_known_classes, rng.random((2, len(truth)))
    scores = evaluate(
        truth, guess, all_truth.is_old[free], names, n_known=n_known, novelty=sure[0], confidence=sure[1]
    ).to_dict()
    folder = plan.schedule.folder / cell.name
    folder.mkdir(parents=True)
    (folder / "scores.json").write_text(json.dumps(scores))
    rows = [
        {"epoch": e, "seconds": 1.0}
        | {f"{kind}/{part}": float(rng.random()) for kind in ("accuracy", "by_name") for part in ("all", "old", "new")}
        for e in range(1, 6)
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    content = {
        "format": FORMAT,
        "method": cell.method,
        "seed": cell.seed,
        "n_categories": k,
        "seconds": {"features": 0.0, "training": 5.0, "assigning": 1.0 + cell.seed},
        "key": cell.key,
        **{name: scores[name] for name in KEPT_SCORES},
    }
    (folder / "result.json").write_text(json.dumps(content))


def pretend(plan: StudyPlan) -> StudyPlan:
    """Write the results of every cell of a plan."""
    for seed, cell in enumerate(plan.schedule.cells.values()):
        pretend_cell(cell, plan, seed)
    return plan
