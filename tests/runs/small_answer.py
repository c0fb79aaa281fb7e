"""A small answer of a model, and the run folder with it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from newkind.runs.answer import Answer, answer_of
from newkind.runs.assignments import Assignment, Category, assignments_csv, category_rows
from newkind.runs.run import Run

__all__ = ["small_answer", "small_run"]

NAMES = ("cat", "dog", "new-01", "new-02", "new-03")


def _rows(n: int) -> tuple[list[Assignment], list[Category]]:
    rng = np.random.default_rng(0)
    lines = []
    for i in range(n):
        best, second = rng.permutation(5)[:2]
        is_labelled = best < 2 and i % 2 == 0
        status = "labelled" if is_labelled else "known" if best < 2 else "new"
        p = round(float(rng.uniform(0.5, 0.9)), 4)
        lines.append(
            Assignment(f"{i:03d}.jpg", NAMES[best], status, p, NAMES[second], round((1 - p) / 2, 4), 0.5, i % 7 == 0)
        )
    categories = []
    for k, name in enumerate(NAMES):
        own = [line.confidence for line in lines if line.category == name and line.status != "labelled"]
        mean = round(sum(own) / max(len(own), 1), 4)
        status = "known" if k < 2 else "new"
        categories.append(Category(name, status, k, len(own), mean, 0, name, False, (k,)))
    return lines, categories


def small_answer(n: int = 40) -> Answer:
    """Answer with n images in two known and three new categories."""
    return answer_of(*_rows(n))


def small_run(folder: Path, n: int = 40) -> Run:
    """Run folder with the same answer."""
    folder.mkdir()
    run = Run(folder)
    lines, categories = _rows(n)
    run.write_config({"fingerprint": "0", "config": {}, "data": "", "root": None, "n_categories": {}})
    run.write_json(run.categories_file, category_rows(categories))
    run.write_text(run.assignments_file, assignments_csv(lines))
    return run
