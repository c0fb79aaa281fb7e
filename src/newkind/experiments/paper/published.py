"""Published results, shown beside ours. The numbers are those of the paper's tables, in `published.json`."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

__all__ = ()

Scores = tuple[float, float, float]
"""All, Old, New, in percent."""
PUBLISHED_UNDER = "DINO ViT-B/16 at 224 pixels with its last block tuned, new views in every epoch, 200 epochs"
"""Conditions of the published results, unless a table says otherwise."""


@cache
def _facts() -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(
        files("newkind.experiments.paper").joinpath("published.json").read_text(encoding="utf-8")
    )
    return facts


def accuracy_of(benchmark: str, method: str) -> Scores | None:
    """Published accuracy with the known number of categories; None if there is none."""
    return _scores(_facts()["accuracy"].get(benchmark, {}).get(method))


def unknown_k_of(benchmark: str, method: str, rule: str) -> Scores | None:
    """Published accuracy with the number of categories known, estimated or twice; None if there is none."""
    if rule == "known":
        return accuracy_of(benchmark, method)
    table = {"estimated": "with_estimate", "twice": "with_twice_k"}.get(rule, "")
    return _scores(_facts()["unknown_k"].get(table, {}).get(benchmark, {}).get(method))


def estimate_of(benchmark: str) -> int | None:
    """Number of categories estimated by the search of Vaze et al.; None if it was not published."""
    found = _facts()["unknown_k"]["estimated_k"].get(benchmark)
    return None if found is None else int(found[1])


def time_of(benchmark: str, method: str) -> str | None:
    """Published time, such as "18s", of features and assigning of the unlabelled images on one RTX 3090."""
    found: str | None = _facts()["inference_time"].get(method, {}).get(benchmark)
    return found


def statistics_of(benchmark: str) -> str | None:
    """Labelled images (classes), unlabelled images (classes), as rounded in the paper."""
    found = _facts()["statistics"].get(benchmark)
    return None if found is None else f"{found[1]} ({found[2]}), {found[3]} ({found[4]})"


def _scores(values: list[float] | None) -> Scores | None:
    return None if values is None else (values[0], values[1], values[2])
