"""A small finished run of painted images, written as `discover` writes it but without training."""

from pathlib import Path

import numpy as np
from PIL import Image

from newkind.evaluation import evaluate
from newkind.runs.assignments import Assignment, Category, assignments_csv, category_rows
from newkind.runs.run import Run

__all__ = ["KINDS", "SCRIPT", "write_images", "write_run"]

SCRIPT = "<script>alert(1)</script>"
KINDS = ("apple", SCRIPT, "pear", "plum")  # The first two are known; the others become new-01 and new-02.
COLOURS = ((200, 40, 40), (40, 180, 60), (60, 80, 200), (180, 170, 40))


def _paint(path: Path, kind: int, seed: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    pixels = np.array(COLOURS[kind]) + rng.integers(-35, 35, (30, 40, 3))
    Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(path)


def write_images(root: Path, n_each: int) -> list[tuple[str, str, str]]:
    """(file, label, truth); the first third of each known kind is labelled, and one file has a name that is a script."""
    rows = []
    for kind, name in enumerate(KINDS):
        for i in range(n_each):
            file = f"{SCRIPT}.jpg" if (kind, i) == (2, 0) else f"img/{kind}-{i:02d}.png"
            _paint(root / file, kind, 100 * kind + i)
            rows.append((file, name if kind < 2 and i < n_each // 3 else "", name))
    lines = ["file_name,label,truth", *(",".join(row) for row in rows)]
    (root / "metadata.csv").write_text("\n".join(lines) + "\n")
    return rows


def write_run(folder: Path, data: Path, *, n_each: int = 12, seed: int = 0, wrong: int = 2, truth: bool = True) -> Run:
    """A run that is right but for `wrong` images of each kind, which lie in the next category."""
    rows = write_images(data, n_each) if not data.exists() else _read_rows(data)
    rng = np.random.default_rng(seed)
    true = np.array([KINDS.index(row[2]) for row in rows])
    labelled = np.array([bool(row[1]) for row in rows])
    best = true.copy()
    for kind in range(4):
        free = np.flatnonzero((true == kind) & ~labelled)
        best[rng.permutation(free)[:wrong]] = (kind + 1) % 4
    names = (KINDS[0], KINDS[1], "new-01", "new-02")
    lines = []
    for i, (file, _, _) in enumerate(rows):
        doubtful = best[i] != true[i] or file.startswith(SCRIPT)
        confidence = float(rng.uniform(0.35, 0.45) if doubtful else rng.uniform(0.7, 1.0))
        second = true[i] if best[i] != true[i] else (best[i] + 1) % 4
        status = "labelled" if labelled[i] else "known" if best[i] < 2 else "new"
        # The rest of the probability, but for a little.
        lines.append(Assignment(file, names[best[i]], status, confidence, names[second], 0.95 * (1 - confidence) ** 2))
    if labelled.any():  # a label that the model does not believe
        i = int(np.flatnonzero(labelled)[0])
        lines[i] = Assignment(lines[i].file, lines[i].category, "labelled", 0.03, "new-01", 0.94)
    folder.mkdir(parents=True, exist_ok=True)
    run = Run(folder)
    run.write_config(
        {
            "data": str(data / "metadata.csv"),
            "root": str(data),
            "fingerprint": f"{seed}",
            "config": {
                "method": {"n_categories": 5, "entropy_weight": 1.0 + seed},
                "training": {"epochs": 3, "seed": seed},
            },
        }
    )
    free = ~labelled
    counts = np.bincount(best[free], minlength=5)
    means = [
        float(np.mean([lines[i].confidence for i in np.flatnonzero(free & (best == k))] or [0.0])) for k in range(5)
    ]
    run.write_json(
        run.categories_file,
        category_rows(
            [
                Category((*names, "new-03")[k], "known" if k < 2 else "new", k, int(counts[k]), round(means[k], 4))
                for k in range(5)
            ]
        ),
    )
    for epoch in range(1, 4):
        row = {
            "epoch": epoch,
            "loss/total": 3.0 / epoch,
            "loss/infonce": 2.0 / epoch,
            "learning_rate": 0.1,
            "seconds": 1.5,
        }
        run.append_metrics(
            row | ({"accuracy/all": 0.3 * epoch, "accuracy/old": 0.2, "accuracy/new": None} if epoch > 1 else {})
        )
    run.write_json(run.environment_file, {"newkind": "0.1.0", "device": "cpu", "weights_sha256": "ab12"})
    if truth:
        run.write_json(run.scores_file, evaluate(true[free], best[free], true[free] < 2, KINDS).to_dict())
    centres = rng.normal(size=(4, 8))
    run.write_features(centres[best] + 0.15 * rng.normal(size=(len(rows), 8)))
    run.write_text(run.assignments_file, assignments_csv(lines))
    return run


def _read_rows(data: Path) -> list[tuple[str, str, str]]:
    lines = (data / "metadata.csv").read_text().splitlines()[1:]
    return [tuple(line.split(",")) for line in lines]  # type: ignore[misc]
