"""The published figures, for the column beside ours. Facts only, from the paper's tables: `published.json`."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

__all__ = ["PUBLISHED_UNDER", "Scores", "accuracy_of", "estimate_of", "statistics_of", "time_of", "unknown_k_of"]

Scores = tuple[float, float, float]
"""All, Old, New, in percent."""
PUBLISHED_UNDER = "DINO ViT-B/16 at 224 pixels with its last block tuned, fresh views, 200 epochs"
"""What the published figures were measured with, where a table does not say otherwise."""


@cache
def _facts() -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(
        files("newkind.experiments.paper").joinpath("published.json").read_text(encoding="utf-8")
    )
    return facts


def accuracy_of(benchmark: str, method: str) -> Scores | None:
    """With the known number of categories; None where nothing is published."""
    return _scores(_facts()["accuracy"].get(benchmark, {}).get(method))


def unknown_k_of(benchmark: str, method: str, rule: str) -> Scores | None:
    """rule: known, estimated or twice."""
    if rule == "known":
        return accuracy_of(benchmark, method)
    table = {"estimated": "with_estimate", "twice": "with_twice_k"}.get(rule, "")
    return _scores(_facts()["unknown_k"].get(table, {}).get(benchmark, {}).get(method))


def estimate_of(benchmark: str) -> int | None:
    """The number of categories that Vaze et al.'s search found."""
    found = _facts()["unknown_k"]["estimated_k"].get(benchmark)
    return None if found is None else int(found[1])


def time_of(benchmark: str, method: str) -> str | None:
    """Of inference over the unlabelled images, features included, on one RTX 3090."""
    found: str | None = _facts()["inference_time"].get(method, {}).get(benchmark)
    return found


def statistics_of(benchmark: str) -> str | None:
    """Labelled images (classes), unlabelled images (classes), as the paper rounds them."""
    found = _facts()["statistics"].get(benchmark)
    return None if found is None else f"{found[1]} ({found[2]}), {found[3]} ({found[4]})"


def _scores(values: list[float] | None) -> Scores | None:
    return None if values is None else (values[0], values[1], values[2])
