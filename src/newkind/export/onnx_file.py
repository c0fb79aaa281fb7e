"""Export of a model as one ONNX file: normalisation, trunk, tuned blocks, mean of the views and heads, with a model card.

The input is `pixels`, uint8 (B, V, 3, S, S): the V views of each image as `newkind.data.crops.view_pixels` makes them. The
outputs are `probabilities` (B, K) of all categories, `features` (B, d), and `outlier` (B,) if the method has a rule for it.
"""

from __future__ import annotations

import json
import logging
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from newkind import __version__
from newkind.atomic import check_companion, replacing, write_companion
from newkind.data.crops import ViewRecipe
from newkind.errors import ConfigError, RunError
from newkind.export.contents import ExportContents
from newkind.export.model_card import model_card
from newkind.export.onnx_model import METADATA_KEY
from newkind.export.options import ExportOptions
from newkind.runs.model_io import LoadedModel, load_model

__all__ = ["write_onnx"]

logger = logging.getLogger(__name__)
CARD = "MODEL.md"
OPSET = 18


class PixelModel(nn.Module):
    """From pixels to probabilities of categories."""

    mean: Tensor
    std: Tensor
    share: Tensor

    def __init__(self, model: LoadedModel, recipe: ViewRecipe) -> None:
        super().__init__()
        if model.backbone is None:
            raise RunError(
                "The run was made from ready features, so there is no model of images to export.", code="wrong-input"
            )
        model.backbone.trunk.use_precision("fp32", device=torch.device("cpu"))
        self.trunk, self.network = model.backbone.trunk, model.network
        method = model.network.method
        self.temperature, self.smoothing = float(method.temperature), float(method.smoothing)
        self.has_outliers = method.has_outlier_rule
        layout, n_categories = model.layout, len(model.categories)
        self.register_buffer("mean", torch.tensor(recipe.mean).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor(recipe.std).view(1, 3, 1, 1))
        # Prototypes of no category have the number n_categories.
        self.register_buffer("share", nn.functional.one_hot(layout.category_of, n_categories + 1)[:, :-1].float())

    def forward(self, pixels: Tensor) -> tuple[Tensor, ...]:
        """(B, V, 3, S, S) -> probabilities (B, K), features (B, d), and outliers (B,) if there is a rule."""
        views = (pixels.flatten(0, 1).float() / 255 - self.mean) / self.std
        features = self.network.features(self.trunk._forward(views))  # (B * V, d)
        features = features.view(-1, pixels.shape[1], features.shape[1]).mean(dim=1)
        logits = self.network.method.logits(features).float()
        p = (logits / self.temperature).softmax(dim=-1)
        p = (1 - self.smoothing) * p + self.smoothing / p.shape[-1]
        found = p @ self.share, features
        return (*found, self.network.method.outliers(features)) if self.has_outliers else found


def write_onnx(contents: ExportContents, out: Path, options: ExportOptions) -> None:  # noqa: ARG001 - all formats have it
    """Write the model of the current answer, and the model card beside it."""
    model = load_model(contents.run, device="cpu")
    recipe = model.recipe
    text = model_card(contents, model, recipe)
    card = _card_place(out, text)
    check_companion(card, text)
    if (precision := model.config.precision) != "fp32":
        level = (
            logging.INFO if precision == "bf16" else logging.WARNING
        )  # features of bf16 differ by a cosine of 0.0001
        logger.log(level, f"The run computed its trunk in {precision}; the exported model computes it in fp32.")
    content = _exported(PixelModel(model, recipe).eval(), model, recipe, _about(contents, model, recipe))
    write_companion(card, text)
    with replacing(out, overwrite=False) as file:
        file.write(content)
    logger.info(f"Model card: {card}")


def _card_place(out: Path, text: str) -> Path:
    """Place of the model card; beside a card of another model, it is named after the file of its own."""
    usual = out.with_name(CARD)
    try:
        check_companion(usual, text)
    except RunError:
        return out.with_name(f"{out.stem}.{CARD}")
    return usual


def _exported(whole: PixelModel, model: LoadedModel, recipe: ViewRecipe, about: dict[str, Any]) -> bytes:
    """Serialised ONNX model; weights are inside of it."""
    try:
        import onnxscript  # noqa: F401 - torch needs it, and it is an extra
        from onnx import helper
    except ImportError:
        raise ConfigError(
            "The export needs the package onnxscript, which is not installed.",
            fix="pip install 'newkind[onnx]'",
            code="missing-package",
        ) from None
    size, views = recipe.image_size, len(model.views)
    example = torch.randint(0, 255, (2, views, 3, size, size), dtype=torch.uint8)
    names = ["probabilities", "features", *(["outlier"] if whole.has_outliers else [])]
    logging.getLogger("onnxscript").setLevel(logging.ERROR)  # it reports what it does not simplify
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # about operators that torch decomposes
        try:
            program = torch.onnx.export(
                whole,
                (example,),
                input_names=["pixels"],
                output_names=names,
                dynamic_shapes=({0: torch.export.Dim("images", min=1, max=4096)},),
                opset_version=OPSET,
                dynamo=True,
                verbose=False,
            )
        except torch.onnx.OnnxExporterError as error:
            raise _failed(str(error).splitlines()[0]) from None
    if program is None:
        raise _failed("no result")
    proto = program.model_proto
    helper.set_model_props(proto, {METADATA_KEY: json.dumps(about)})
    serialised: bytes = proto.SerializeToString()
    return serialised


def _failed(reason: str) -> RunError:
    return RunError(f"torch cannot write this model as ONNX ({reason}).", code="export-failed")


def _about(contents: ExportContents, model: LoadedModel, recipe: ViewRecipe) -> dict[str, Any]:
    """What is needed to use the model without its run, as JSON in the file."""
    return {
        "newkind": __version__,
        "run": contents.run.folder.resolve().name,
        "event": contents.answer.last,
        "image_size": recipe.image_size,
        "crop_share": recipe.crop_share,
        "mirror": recipe.mirror,
        "reducing_gap": recipe.reducing_gap,
        "mean": list(recipe.mean),
        "std": list(recipe.std),
        "views": list(model.views),
        "view_seed": model.config.view_seed,
        "calibrated": model.calibrated,
        "categories": [{"id": c.id, "name": c.name, "status": c.status} for c in model.categories],
    }
