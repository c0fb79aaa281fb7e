"""A model as ONNX: onnxruntime gives the probabilities that Newkind gives, without importing torch."""

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_sample_images
from torch import Tensor

import newkind
from error_codes import raises
from newkind.backbone.merging import merge_tokens
from newkind.config import DEFAULT_BACKBONE
from newkind.discovery import Discovery
from newkind.errors import DataError, RunError
from newkind.export.onnx_file import OPSET, PixelModel
from newkind.export.onnx_model import OnnxModel, list_images, predict_images
from newkind.runs.assignment import Assignment
from newkind.runs.model_io import load_model

REAL_WEIGHTS = Path(os.environ["NEWKIND_USER_WEIGHTS"]) / f"{DEFAULT_BACKBONE}.safetensors"
"""The user's; the tests have a cache folder of their own."""
EXACT = {"device": "cpu", "trunk_precision": "fp32"}
"""The precision of an export, so that a run on a processor with bf16 gives the same probabilities."""
BACKBONE = {"backbone": "vit_tiny_patch16_224", "random_weights": True, "image_size": 32, **EXACT}


def write_photographs(root: Path) -> Path:
    """Parts of the two photographs in scikit-learn, turned by 180 degrees for two more kinds; two kinds are labelled."""
    (root / "img").mkdir(parents=True)
    rows = ["file_name,label"]
    rng = np.random.default_rng(0)
    for kind, photo in enumerate([*load_sample_images().images, *(p[::-1] for p in load_sample_images().images)]):
        for i in range(6):
            top, left = rng.integers(0, 200), rng.integers(0, 400)
            Image.fromarray(np.ascontiguousarray(photo[top : top + 220, left : left + 240])).save(
                root / "img" / f"{kind}-{i}.png"
            )
            rows.append(f"img/{kind}-{i}.png,{('temple', 'flower')[kind] if kind < 2 and i < 3 else ''}")
    (root / "metadata.csv").write_text("\n".join(rows) + "\n")
    return root


def assert_equal(found: list[Assignment], expected: list[Assignment]) -> None:
    """Within the fourth decimal, to which results are rounded; categories differ only where two are as likely."""
    assert [line.file for line in found] == [line.file for line in expected]
    for one, other in zip(found, expected, strict=True):
        for name in ("confidence", "second_confidence", "novelty"):
            assert getattr(one, name) == pytest.approx(getattr(other, name), abs=2e-4)
        assert one.category == other.category or other.confidence - other.second_confidence < 3e-4


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> tuple[Discovery, Path]:
    """A run with several views, two merged categories and a renamed one, and its export."""
    folder = tmp_path_factory.mktemp("onnx")
    run = newkind.discover(
        write_photographs(folder / "data"),
        folder / "run",
        n_categories=4,
        effort="standard",
        report=False,
        **BACKBONE,
    )
    run.rename("new-01", "temple | turned")
    run.merge(["temple", "new-02"])
    return run, run.export(folder / "model.onnx", format="onnx")


def test_a_calibrated_read_out_is_exported(model: tuple[Discovery, Path]) -> None:
    loaded = load_model(model[0].run, device="cpu")
    loaded.network.method.read_out_smoothing.fill_(0.2)
    exported = PixelModel(loaded, loaded.recipe).eval()
    pixels = torch.randint(0, 256, (2, 1, 3, 32, 32), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    with torch.no_grad():
        p, features = exported(pixels)[:2]
        expected = loaded.network.category_probabilities(features) @ exported.share
    torch.testing.assert_close(p, expected)


def test_probabilities_are_those_of_predict(model: tuple[Discovery, Path]) -> None:
    run, file = model
    images = Path(run.run.config()["root"]) / "img"
    loaded = OnnxModel(file)
    assert len(loaded.views) > 1
    found, skipped = predict_images(loaded, list_images([images]))
    assert not skipped
    assert_equal(found, run.predict(images))
    assert {line.outlier for line in found} <= {True, False}


def test_merged_tokens_are_exported(tmp_path: Path) -> None:
    """At 64 pixels, 16 patches are merged to 4 in two steps."""
    run = newkind.discover(
        write_photographs(tmp_path / "data"),
        tmp_path / "run",
        n_categories=4,
        epochs=1,
        views=2,
        patch_tokens=4,
        report=False,
        **BACKBONE | {"image_size": 64},
    )
    loaded = OnnxModel(run.export(tmp_path / "model.onnx", format="onnx"))
    images = tmp_path / "data" / "img"
    found, skipped = predict_images(loaded, list_images([images]))
    assert not skipped
    assert_equal(found, run.predict(images))
    exported = PixelModel(whole := load_model(run.run, device="cpu"), whole.recipe).eval()
    assert exported.trunk.n_patches == 4
    pixels = np.random.default_rng(0).integers(0, 256, (3, len(loaded.views), 3, 64, 64), dtype=np.uint8)
    for n in (1, 3):
        with torch.no_grad():
            expected = exported(torch.from_numpy(pixels[:n]))[0]
        np.testing.assert_allclose(loaded.compute(pixels[:n]).probabilities, expected.numpy(), atol=1e-4)


class Merging(torch.nn.Module):
    """Patch tokens (B, 64, d) merged to 40 groups, and the sizes of the groups."""

    def forward(self, xhat: Tensor) -> tuple[Tensor, Tensor]:
        merged = merge_tokens(xhat, n_prefix=0, n_patches=40)
        return merged.xhat, merged.sizes


def test_exported_merges_resolve_ties_as_torch_does() -> None:
    """Pairs of whole numbers with two distances, which are exact in both."""
    import onnxruntime

    pairs = 10 * torch.arange(32.0)[:, None] + torch.tensor([[0, 2], [0, 1]]).repeat(16, 1)
    xhat = torch.stack([pairs.flatten(), pairs.flatten().flip(0)])[:, :, None]
    program = torch.onnx.export(
        Merging().eval(), (xhat,), input_names=["xhat"], opset_version=OPSET, dynamo=True, verbose=False
    )
    assert program is not None
    session = onnxruntime.InferenceSession(program.model_proto.SerializeToString())
    for found, expected in zip(session.run(None, {"xhat": xhat.numpy()}), Merging()(xhat), strict=True):
        np.testing.assert_allclose(found, expected.numpy())


def test_the_model_card_says_what_the_model_is(model: tuple[Discovery, Path]) -> None:
    card = (model[1].parent / "MODEL.md").read_text()
    for text in ("## Data", "## Classes", "## Accuracy", "## Limits", "## Weights", "Licence", "temple \\| turned"):
        assert text in card


def test_one_line_per_image_also_for_broken_ones(model: tuple[Discovery, Path], tmp_path: Path) -> None:
    run, file = model
    good = Path(run.run.config()["root"]) / "img" / "0-0.png"
    (tmp_path / "broken.jpg").write_bytes(b"\xff\xd8\xff nothing")
    lines, skipped = predict_images(OnnxModel(file), list_images([good, tmp_path / "broken.jpg", good]))
    assert [line.status == "unreadable" for line in lines] == [False, True, False]
    assert len(skipped) == 1
    assert asdict(lines[0]) == asdict(lines[2])


def test_predict_does_not_import_torch(model: tuple[Discovery, Path], tmp_path: Path) -> None:
    run, file = model
    image = Path(run.run.config()["root"]) / "img" / "0-0.png"
    code = (
        "import sys; from newkind.__main__ import main; sys.argv = ['newkind', 'predict', *sys.argv[1:]]\n"
        "try: main()\nfinally: print('torch' in sys.modules, 'scipy' in sys.modules, file=sys.stderr)"
    )
    command = [sys.executable, "-c", code, "--onnx", str(file), str(image), "--out", str(tmp_path / "p.csv")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.stderr.splitlines()[-1] == "False False", done.stderr
    header, row = (tmp_path / "p.csv").read_text().splitlines()
    assert dict(zip(header.split(","), row.split(","), strict=True))["file"] == str(image)


def test_files_that_are_no_exports(tmp_path: Path, model: tuple[Discovery, Path]) -> None:
    import onnx

    (tmp_path / "a.onnx").write_bytes(b"not onnx")
    whole = model[1].read_bytes()
    (tmp_path / "b.onnx").write_bytes(whole[: len(whole) // 2])
    for number, text in enumerate(("", "[1, 2]", "{}", json.dumps({"image_size": 32}))):
        proto = onnx.load_from_string(whole)
        onnx.helper.set_model_props(proto, {"newkind": text} if text else {})
        (tmp_path / f"{number}.onnx").write_bytes(proto.SerializeToString())
    for name, code in {"a": "unreadable", "b": "unreadable", "none": "missing-file"}.items():
        with raises(DataError, code):
            OnnxModel(tmp_path / f"{name}.onnx")
    for number in range(4):
        with raises(DataError, "not-an-export"):
            OnnxModel(tmp_path / f"{number}.onnx")


def test_a_card_that_is_there_is_kept(model: tuple[Discovery, Path], tmp_path: Path) -> None:
    """The card of another model in the same folder stays; an unrelated file under the other name is an error."""
    (tmp_path / "MODEL.md").write_text("precious")
    model[0].export(tmp_path / "m.onnx", format="onnx")
    assert (tmp_path / "MODEL.md").read_text() == "precious"
    assert "## Classes" in (tmp_path / "m.MODEL.md").read_text()
    (tmp_path / "n.MODEL.md").write_text("precious")
    with raises(RunError, "exists"):
        model[0].export(tmp_path / "n.onnx", format="onnx")
    assert (tmp_path / "n.MODEL.md").read_text() == "precious"
    assert not (tmp_path / "n.onnx").exists()


@pytest.mark.skipif(not REAL_WEIGHTS.exists(), reason="the weights of DINOv2 ViT-S/14 are not on this machine")
def test_probabilities_with_real_weights(tmp_path: Path) -> None:
    run = newkind.discover(
        write_photographs(tmp_path / "data"),
        tmp_path / "run",
        n_categories=4,
        weights=REAL_WEIGHTS,
        image_size=112,
        views=2,
        report=False,
        **EXACT,
    )
    file = run.export(tmp_path / "model.onnx", format="onnx")
    images = tmp_path / "data" / "img"
    found, _ = predict_images(OnnxModel(file), list_images([images]))
    assert_equal(found, run.predict(images))
