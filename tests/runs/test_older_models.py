"""Models of runs that were made before a method had a setting."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import newkind
from newkind.data import from_features


@pytest.mark.parametrize(
    ("method", "before"),
    [("gcd", {"projector_width": 0}), ("rankstats", {"head": "cosine", "relu": False, "temperature": 0.1})],
)
def test_settings_that_an_older_model_does_not_have(tmp_path: Path, method: str, before: dict) -> None:
    rng = np.random.default_rng(0)
    truth = np.arange(80) % 4
    x = (3 * np.eye(4, 8)[truth] + rng.normal(size=(80, 8))).astype(np.float32)
    data = from_features(x, np.where((truth < 2) & (np.arange(80) < 40), truth, -1), truth=truth)
    options = {"epochs": 1, "batch_size": 20, "device": "cpu", "report": False}
    run = newkind.discover(data, tmp_path / "run", method=method, settings=before, **options)
    probe = torch.from_numpy(x[:5])
    expected = run.model.network.method.logits(probe).detach()
    card = json.loads((tmp_path / "run" / "model.json").read_text())
    for name in before:
        if name != "temperature":  # this one was always there
            del card["method_config"][name]
    (tmp_path / "run" / "model.json").write_text(json.dumps(card))
    again = newkind.load(tmp_path / "run").model.network.method
    torch.testing.assert_close(again.logits(probe).detach(), expected)
