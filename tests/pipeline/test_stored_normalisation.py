"""A run predicts with the normalisation that it was made with, which is in its model.json."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import newkind
from coloured_pictures import SMALL, make_data, make_more, make_run
from error_codes import raises
from newkind.data.crops import ViewRecipe
from newkind.discovery import Discovery
from newkind.errors import RunError
from newkind.export.onnx_file import PixelModel
from newkind.serving.run_model import RunModel

OWN, FORMER = ViewRecipe(image_size=32, mean=(0.5,) * 3, std=(0.5,) * 3), ViewRecipe(image_size=32)


@pytest.fixture(autouse=True)
def _own_normalisation(monkeypatch: pytest.MonkeyPatch) -> None:
    """The backbone of these tests, whose random weights have none, is normalised as that of its trained weights."""
    monkeypatch.setattr("newkind.backbone.loader.recipe_of", lambda config: OWN)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_data(tmp_path_factory.mktemp("pictures"))


@pytest.fixture
def former(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run of an earlier version, which normalised for every backbone as for ImageNet and did not say so."""
    with monkeypatch.context() as patch:
        patch.setattr("newkind.backbone.loader.recipe_of", lambda config: FORMER)
        make_run(data, tmp_path / "former")
    card = json.loads((tmp_path / "former" / "model.json").read_text())
    assert card.pop("mean") == list(FORMER.mean)
    assert card.pop("std") == list(FORMER.std)
    (tmp_path / "former" / "model.json").write_text(json.dumps(card))
    return tmp_path / "former"


def check(run: Discovery, recipe: ViewRecipe, data: Path) -> None:
    """All ways to use the model normalise with the recipe and give what the run assigned."""
    model = run.model
    assert model.recipe == recipe
    found = {Path(line.file).name: line for line in run.predict(data / "unlabelled")}
    lines = [line for line in run.assignments if line.status != "labelled"]
    assert found.keys() == {Path(line.file).name for line in lines}
    for line in lines:
        assert found[Path(line.file).name].confidence == pytest.approx(line.confidence, abs=2e-3)
    pixels = np.random.default_rng(0).integers(0, 256, (2, len(model.views), 3, 32, 32), dtype=np.uint8)
    served, exported = RunModel(model), PixelModel(model, model.recipe).eval()
    with torch.no_grad():
        p = exported(torch.from_numpy(pixels))[0]
    torch.testing.assert_close(torch.from_numpy(served.compute(pixels).probabilities), p, atol=1e-4, rtol=1e-3)
    assert exported.mean.flatten().tolist() == pytest.approx(recipe.mean)
    assert exported.std.flatten().tolist() == pytest.approx(recipe.std)


def test_a_run_uses_and_stores_the_normalisation_of_its_backbone(data: Path, tmp_path: Path) -> None:
    run = make_run(data, tmp_path / "run")
    card = json.loads((tmp_path / "run" / "model.json").read_text())
    assert (card["mean"], card["std"]) == ([0.5] * 3, [0.5] * 3)
    check(run, OWN, data)


def test_a_former_run_keeps_its_normalisation(former: Path, data: Path, tmp_path: Path) -> None:
    check(newkind.load(former), FORMER, data)
    with raises(RunError, "other-run"):  # the same command, whose features would be others
        newkind.discover(data, former, n_categories=4, effort="quick", report=False, **SMALL)
    continued = newkind.continue_run(former, tmp_path / "continued", add=[make_more(tmp_path / "more")], report=False)
    assert continued.model.recipe == FORMER


@pytest.mark.parametrize("values", [{"std": [0.5, 0.5, 0.0]}, {"mean": [0.5]}, {"mean": [1e300, 0, 0]}, {"std": "abc"}])
def test_a_card_with_another_normalisation_than_three_numbers(former: Path, values: dict[str, object]) -> None:
    card = json.loads((former / "model.json").read_text())
    (former / "model.json").write_text(json.dumps(card | values))
    with raises(RunError, "unreadable"):
        _ = newkind.load(former).model
