"""The number of categories of a collection: the features it is found from, its JSON and its curve."""

from __future__ import annotations

import logging
from math import log
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from newkind.backbone.loader import plan_for, prepare_cache, prepare_trunk
from newkind.backbone.online import OnlineTokens
from newkind.backbone.token_cache import TokenCache, seconds_per_view
from newkind.backbone.tokens import TokenSource
from newkind.clustering.n_categories import Estimate
from newkind.config import BackboneConfig
from newkind.data import Collection, Features
from newkind.errors import RunError
from newkind.progress import duration, progress_bar
from newkind.runs.run import Run

__all__ = ["backbone_features", "draw_curve", "estimate_from_json", "load_estimate", "save_estimate"]

logger = logging.getLogger(__name__)


def backbone_features(collection: Collection, config: BackboneConfig) -> tuple[Tensor, NDArray[np.int64]]:
    """(features (n, d) of the backbone as it came, numbers of the usable images (n,)).

    From the token cache if it is there already; otherwise from one look at each image, which is not kept.
    """
    items = collection.catalog.items
    if isinstance(items, Features):
        return torch.from_numpy(np.ascontiguousarray(items.values, dtype=np.float32)), np.arange(len(items))
    prepared = prepare_trunk(config)
    source: TokenSource
    if plan_for(collection, config, prepared).todo:
        seconds = len(items) * seconds_per_view(prepared.trunk, config.image_size, device=prepared.device)
        logger.info(f"One look at {len(items):,} images on {prepared.device}, about {duration(seconds)}.")
        source = OnlineTokens(items, prepared.trunk, config.recipe, device=prepared.device)
    else:
        source = cast(TokenCache, prepare_cache(collection, config, prepared))
    images = np.flatnonzero(source.usable)
    rows = []
    with progress_bar("Looking", len(images), show=len(images) > 500) as advance, torch.no_grad():
        batches = [images[i : i + 64] for i in range(0, len(images), 64)]
        for tokens in source.evaluation_batches(iter(batches)):
            rows.append(prepared.tuned(tokens.to(prepared.device)).float().cpu())
            advance(len(rows[-1]))
    return torch.cat(rows), images


def save_estimate(run: Run, estimate: Estimate) -> None:
    """Into the run folder, with its picture."""
    run.write_text(run.estimate_plot, draw_curve(estimate))
    run.write_json(run.estimate_file, estimate.to_json())


def load_estimate(run: Run) -> Estimate | None:
    """What was found out for this run before; None if nothing was."""
    return (
        estimate_from_json(run.read_json(run.estimate_file), run.estimate_file) if run.estimate_file.exists() else None
    )


def estimate_from_json(content: dict[str, Any], path: Path) -> Estimate:
    try:
        return Estimate(**content | {"curve": tuple((int(k), float(score)) for k, score in content["curve"])})
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(f"{path} cannot be read ({error}).", fix="Delete it, and it will be found out again.") from None


def draw_curve(estimate: Estimate) -> str:
    """The score against K as SVG, with the estimate and its interval. Readable on light and on dark ground."""
    width, height, left, bottom, top, right = 640, 360, 56, 48, 44, 16
    points = estimate.curve or ((estimate.low, 0.0), (max(estimate.high, estimate.low + 1), 0.0))
    first, last = log(points[0][0]), log(max(points[-1][0], points[0][0] + 1))
    most = max(max(score for _, score in points), 1e-9)

    def x(k: float) -> float:
        return round(left + (width - left - right) * (log(max(k, 1)) - first) / (last - first), 1)

    def y(score: float) -> float:
        return round(height - bottom - (height - bottom - top) * score / most, 1)

    line = " ".join(f"{x(k)},{y(score)}" for k, score in points)
    ticks = [k for k in (2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000) if points[0][0] <= k <= points[-1][0]]
    what = {"search": "accuracy on labelled samples", "pairs": "F1 of pairs of held-out classes"}.get(estimate.way, "")
    low, high = (
        min(max(estimate.low, points[0][0]), points[-1][0]),
        max(min(estimate.high, points[-1][0]), points[0][0]),
    )
    best = min(max(estimate.n_categories, points[0][0]), points[-1][0])
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        f'<rect x="{x(low)}" y="{top}" width="{max(x(high) - x(low), 1)}" height="{height - bottom - top}" fill="#2a7de1" opacity=".15"/>',
        f'<line x1="{x(best)}" x2="{x(best)}" y1="{top}" y2="{height - bottom}" stroke="#2a7de1" stroke-dasharray="4 3"/>',
        f'<polyline points="{line}" fill="none" stroke="#222" stroke-width="2"/>',
        *(f'<circle cx="{x(k)}" cy="{y(score)}" r="2.5" fill="#222"/>' for k, score in points),
        f'<path d="M{left} {top}V{height - bottom}H{width - right}" fill="none" stroke="#888"/>',
        *(f'<text x="{x(k)}" y="{height - bottom + 18}" text-anchor="middle" fill="#444">{k}</text>' for k in ticks),
        *(
            f'<text x="{left - 8}" y="{y(s * most) + 4}" text-anchor="end" fill="#444">{s * most:.2f}</text>'
            for s in (0, 0.5, 1)
        ),
        f'<text x="{(left + width) / 2}" y="{height - 10}" text-anchor="middle" fill="#444">number of categories K</text>',
        f'<text x="{left}" y="20" fill="#222">{what}: about {estimate.n_categories} categories'
        + (f", between {estimate.low} and {estimate.high}" if estimate.low < estimate.high else "")
        + "</text>",
        "</svg>",
    ]
    return "\n".join(parts) + "\n"
