"""A run with a cheaper trunk says so, and predicts with the same precision."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import newkind
from newkind.backbone.cache_folders import list_caches

SMALL = {"backbone": "vit_tiny_patch16_224", "random_weights": True, "image_size": 32, "device": "cpu", "report": False}


@pytest.fixture
def photographs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Twelve noisy copies of each of four patterns; half of those of two patterns are labelled."""
    monkeypatch.setenv("NEWKIND_CACHE", str(tmp_path / "cache"))
    rng, rows, folder = np.random.default_rng(0), ["file_name,label,truth"], tmp_path / "photographs"
    folder.mkdir()
    for kind in range(4):
        pattern = rng.integers(0, 200, (5, 6, 3))
        for i in range(12):
            pixels = np.kron(pattern, np.ones((8, 8, 1))) + rng.integers(0, 50, (40, 48, 3))
            Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{kind}-{i:02d}.png")
            rows.append(f"{kind}-{i:02d}.png,{kind if kind < 2 and i % 2 else ''},{kind}")
    (folder / "metadata.csv").write_text("\n".join(rows) + "\n")
    return folder


@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_predict_uses_the_precision_of_the_run(photographs: Path, tmp_path: Path, precision: str) -> None:
    out = tmp_path / "run"
    run = newkind.discover(photographs, out, effort="quick", trunk_precision=precision, **SMALL)
    assert run.run.config()["config"]["backbone"]["trunk_precision"] == precision
    assert json.loads(run.run.model_card.read_text())["backbone"]["trunk_precision"] == precision
    assert {cache.content for cache in list_caches()} == {f"features, evaluation view, {precision}"}
    model = newkind.load(out).model
    assert model.backbone is not None
    assert model.backbone.trunk.precision == precision
    predicted = {Path(line.file).name: line for line in newkind.predict(out, photographs)}
    for line in run.assignments:
        if line.status != "labelled":
            assert predicted[line.file].category == line.category
            assert predicted[line.file].confidence == pytest.approx(line.confidence, abs=1e-3)


def test_a_run_of_another_precision_is_another_run(photographs: Path, tmp_path: Path) -> None:
    newkind.discover(photographs, tmp_path / "run", effort="quick", **SMALL)
    with pytest.raises(newkind.errors.RunError):
        newkind.discover(photographs, tmp_path / "run", effort="quick", trunk_precision="int8", **SMALL)
