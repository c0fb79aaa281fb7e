"""The model card of an exported model: data, classes, accuracy, limits and the licence of the weights."""

from __future__ import annotations

from typing import Any

from newkind import __version__
from newkind.data.crops import ViewRecipe
from newkind.errors import RunError
from newkind.export.contents import ExportContents
from newkind.runs.model_io import LoadedModel, read_card

__all__ = ["model_card"]

LICENCES = {
    "dinov3": "DINOv3 licence (Meta), which restricts use",
    "dinov2": "Apache-2.0 (Meta)",
    "dino": "Apache-2.0 (Meta)",
    "clip": "see the licence of the CLIP model that the weights come from",
}
"""Licence of published weights, by a part of the backbone's name; the first that fits."""


def model_card(contents: ExportContents, model: LoadedModel, recipe: ViewRecipe) -> str:
    """Text of MODEL.md, in Markdown."""
    config = contents.run.config()
    card = _read_card(contents)
    statuses = [item.line.status for item in contents.items]
    known = [c for c in model.categories if c.status == "known"]
    new = [c for c in model.categories if c.status == "new"]
    without = [c.name for c in model.categories if not c.prototypes]
    size, views = recipe.image_size, len(model.views)
    lines = [
        f"# {contents.run.folder.resolve().name}",
        "",
        f"A classifier of images into {len(known)} known and {len(new)} new categories, exported by Newkind {__version__} "
        f"with all decisions up to event {contents.answer.last}.",
        "",
        "## Data",
        "",
        f"- Source: `{config.get('data', '')}`",
        f"- Images: {len(statuses):,}, of which {statuses.count('labelled'):,} were labelled, "
        f"{statuses.count('approved'):,} confirmed by a person and {statuses.count('junk'):,} marked as junk",
        f"- Method: {card.get('method', '')}; backbone: {model.config.name}, images of {size} pixels, mean of "
        f"{views} {'view' if views == 1 else 'views'}",
        "",
        "## Classes",
        "",
        "| category | id | kind | unlabelled images | mean confidence |",
        "|---|---|---|---|---|",
        *(
            f"| {_cell(c.name)} | {_cell(c.id)} | {c.status} | {c.n_images:,} | {c.mean_confidence:.2f} |"
            for c in model.categories
        ),
        "",
        "## Accuracy",
        "",
        *_accuracy(contents),
        f"- Confidences are {'calibrated on held-out known classes' if model.calibrated else 'not calibrated'}.",
        "",
        "## Limits",
        "",
        "- The model knows only the categories above. An image of anything else gets one of them; `outlier` and a low "
        "confidence are hints, not proof.",
        "- Names of new categories are those that a person gave, or new-01, new-02, ... Categories that nobody reviewed may "
        "mix several kinds or split one.",
        *(
            [
                f"- Never predicted, because a person made them after the model was fitted: {', '.join(map(_cell, without))}."
            ]
            if without
            else []
        ),
        "- Images that differ from the data above in camera, background or season may be classified worse.",
        *_ending(model, recipe, card),
    ]
    return "\n".join(lines)


def _ending(model: LoadedModel, recipe: ViewRecipe, card: dict[str, Any]) -> list[str]:
    """The sections about weights, input and output."""
    size, views = recipe.image_size, len(model.views)
    return [
        "",
        "## Weights",
        "",
        f"- Backbone weights: {card.get('weights_source', '')} (sha256 {card.get('weights_sha256', '')})",
        f"- Licence of the backbone weights: {_licence(model)}. The file contains them; who passes it on must keep to it.",
        "",
        "## Input and output",
        "",
        f"- Input `pixels`: uint8, (images, {views}, 3, {size}, {size}), RGB; {views} square crops of the image whose shorter "
        f"side was resized to {recipe.resized} pixels (bicubic). Normalisation is inside of the model.",
        "- Output `probabilities`: float32, (images, categories), in the order of the table above.",
        "- `newkind predict --onnx FILE IMAGES` and `newkind serve FILE` do all of this.",
        "",
    ]


def _read_card(contents: ExportContents) -> dict[str, Any]:
    from newkind.runs.current_answer import refit_run

    run, refit = contents.run, contents.answer.refit
    return read_card(refit_run(run, refit) if refit else run)


def _accuracy(contents: ExportContents) -> list[str]:
    """Scores of the run, if its data has a truth."""
    try:
        scores = contents.run.read_json(contents.run.scores_file)
        found = scores["accuracy"]
        parts = [
            f"{name} {100 * float(found[name]):.1f} %" for name in ("all", "old", "new") if found.get(name) is not None
        ]
    except (RunError, KeyError, TypeError, ValueError):
        return ["- Not measured: the data has no true classes beyond its labels."]
    return [f"- Clustering accuracy of the unlabelled images of the run, before decisions: {', '.join(parts)}."]


def _licence(model: LoadedModel) -> str:
    if model.config.random_weights:
        return "none (random weights)"
    name = model.config.name.lower()
    return next(
        (text for part, text in LICENCES.items() if part in name), "see the page of the model that they come from"
    )


def _cell(text: str) -> str:
    """Text in a cell of a Markdown table."""
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
