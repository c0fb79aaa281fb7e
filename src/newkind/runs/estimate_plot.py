"""Plot of the score against the number of categories, as SVG that is readable on light and dark backgrounds."""

from __future__ import annotations

from math import log

from newkind.clustering.estimate import Estimate

__all__ = ["draw_estimate"]

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 640, 360, 56, 48, 44, 16
TICKS = (2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
SCORES = {
    "clusters": "F1 of held-out classes",
    "guess": "F1 of held-out classes",
    "pairs": "F1 of pairs of held-out classes",
    "search": "Accuracy on labelled samples",
}


def draw_estimate(estimate: Estimate) -> str:
    """Draw the curve of an estimate, with the estimate and its interval.

    Parameters
    ----------
    estimate : Estimate
        The estimate.

    Returns
    -------
    str
        SVG.
    """
    points = estimate.curve or ((estimate.low, 0.0), (max(estimate.high, estimate.low + 1), 0.0))
    first, last = points[0][0], max(points[-1][0], points[0][0] + 1)
    top_score = max(max(score for _, score in points), 1e-9)

    def x(k: float) -> float:
        inside = min(max(k, first), last)
        return round(LEFT + (WIDTH - LEFT - RIGHT) * (log(max(inside, 1)) - log(first)) / (log(last) - log(first)), 1)

    def y(score: float) -> float:
        return round(HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * score / top_score, 1)

    line = " ".join(f"{x(k)},{y(score)}" for k, score in points)
    low, high, best = x(estimate.low), x(estimate.high), x(estimate.n_categories)
    score = f"{SCORES.get(estimate.way, 'Score')}: " if estimate.curve else ""
    guess, kind = ("guess of ", "plausible") if estimate.way == "guess" else ("", "90 % interval")
    interval = f", {kind} {estimate.low} to {estimate.high}" if estimate.low < estimate.high else ""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="13">',
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
            f'<rect x="{low}" y="{TOP}" width="{max(high - low, 1)}" height="{HEIGHT - BOTTOM - TOP}" fill="#2a7de1" opacity=".15"/>',
            f'<line x1="{best}" x2="{best}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="#2a7de1" stroke-dasharray="4 3"/>',
            f'<polyline points="{line}" fill="none" stroke="#222" stroke-width="2"/>',
            *(f'<circle cx="{x(k)}" cy="{y(score)}" r="2.5" fill="#222"/>' for k, score in points),
            f'<path d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}" fill="none" stroke="#888"/>',
            *(_text(x(k), HEIGHT - BOTTOM + 18, str(k), "middle") for k in TICKS if first <= k <= last),
            *(_text(LEFT - 8, y(s * top_score) + 4, f"{s * top_score:.2f}", "end") for s in (0, 0.5, 1)),
            _text((LEFT + WIDTH) / 2, HEIGHT - 10, "Number of categories K", "middle"),
            _text(LEFT, 20, f"{score}{guess}{estimate.n_categories} categories{interval}", "start"),
            "</svg>\n",
        ]
    )


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="#444">{text}</text>'
