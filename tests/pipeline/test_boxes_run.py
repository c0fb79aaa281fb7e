"""A discovery on boxes: from a detector's file to assignments, a report and predictions."""

import csv
import json
from pathlib import Path

import numpy as np
from PIL import Image

import newkind

BACKBONE = {"backbone": "vit_tiny_patch16_224", "random_weights": True, "image_size": 32, "device": "cpu"}


def test_boxes_from_images_to_predictions(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    entries, rows = [], ["File,RelativePath,Species,burst"]
    for i in range(12):
        pixels = rng.integers(0, 60, (60, 120, 3), dtype=np.uint8)
        pixels[:, :60, i % 3] += 150
        pixels[:, 60:, (i + 1) % 3] += 150
        path = tmp_path / "data" / "cam1" / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path)
        boxes = [
            {"category": "1", "conf": 0.9, "bbox": [left, 0.1, 0.4, 0.8]}
            for left in ((0.05, 0.55) if i > 5 else (0.05,))
        ]
        entries.append({"file": f"cam1/{i}.png", "detections": boxes})
        rows.append(f"{i}.png,cam1,{('fox', 'hare')[i % 3] if i < 6 and i % 3 < 2 else 'unknown'},b{i}")
    (tmp_path / "data" / "timelapse.csv").write_text("\n".join(rows) + "\n")
    detections = tmp_path / "data" / "md.json"
    detections.write_text(json.dumps({"detection_categories": {"1": "animal"}, "images": entries}))
    found = newkind.discover(
        tmp_path / "data" / "timelapse.csv",
        tmp_path / "run",
        boxes=detections,
        n_categories=3,
        effort="quick",
        **BACKBONE,
    )
    names = [f"cam1/{i}.png#{k}" for i in range(12) for k in range(1, 3 if i > 5 else 2)]
    assert [line.file for line in found.assignments] == names
    with open(found.run.assignments_file, newline="") as file:
        first = next(csv.DictReader(file))
    assert (first["file"], first["burst"], first["box_confidence"]) == ("cam1/0.png#1", "b0", "0.9")
    assert "data:image/" in found.run.report_file.read_text()
    again = newkind.load(tmp_path / "run").predict(detections)
    assert [line.file for line in again] == names
    assert all(line.category for line in again)
