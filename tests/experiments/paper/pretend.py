"""Finished cells that nobody has run, to test what becomes of results without a training."""

import json

import numpy as np

from newkind.evaluation import evaluate
from newkind.experiments.cells import FORMAT, Cell
from newkind.experiments.paper.run_study import Plan


def pretend_cell(cell: Cell, plan: Plan, seed: int) -> None:
    """Writes what a finished cell leaves behind, with the scores of random predictions."""
    rng = np.random.default_rng(seed)
    free = ~cell.data.collection.catalog.is_labelled
    truth = cell.data.truth.labels[free]
    k = cell.data.n_classes if cell.n_categories == "auto" else int(cell.n_categories)
    guess = np.where(rng.random(len(truth)) < 0.6, truth, rng.integers(0, k, len(truth)))
    names = cell.data.truth.class_names
    scores = evaluate(truth, guess, cell.data.truth.is_old[free], names).to_dict()
    folder = plan.runs / cell.name
    folder.mkdir(parents=True)
    (folder / "scores.json").write_text(json.dumps(scores))
    rows = [
        {"epoch": e, "seconds": 1.0} | {f"accuracy/{part}": float(rng.random()) for part in ("all", "old", "new")}
        for e in range(1, 6)
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    kept = ("accuracy", "errors", "nmi", "ari", "n_samples", "n_classes", "n_active_clusters")
    content = {
        "format": FORMAT,
        "method": cell.method,
        "seed": cell.seed,
        "n_categories": k,
        "seconds": {"tokens": 0.0, "training": 5.0, "sorting": 1.0 + cell.seed},
        "key": cell.key,
        **{name: scores[name] for name in kept},
    }
    (folder / "result.json").write_text(json.dumps(content))


def pretend(plan: Plan) -> Plan:
    """Every cell of a plan."""
    for seed, (cell, _) in enumerate(plan.cells().values()):
        pretend_cell(cell, plan, seed)
    return plan
