"""The geometry of the page's charts. Templates draw it as SVG; colours come from the style sheet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10
from typing import Any

__all__ = ["Bar", "Curve", "Panel", "Tick", "bars", "line_panel", "nice_ticks", "short_number"]

WIDTH, HEIGHT = 360, 190
LEFT, RIGHT, TOP, BOTTOM = 44, 12, 10, 26


@dataclass(frozen=True)
class Tick:
    at: float
    text: str


@dataclass(frozen=True)
class Curve:
    """One line of a panel."""

    name: str
    path: str
    """As SVG's `d`."""
    last: str
    """Its last value, as text."""
    dots: tuple[tuple[float, float], ...]
    """Where there are few points, they are marked."""


@dataclass(frozen=True, kw_only=True)
class Panel:
    """A chart of lines over a common x axis."""

    title: str
    curves: tuple[Curve, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    x_name: str
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    top: int = TOP
    bottom: int = HEIGHT - BOTTOM
    band: tuple[float, float] | None = None
    """A stretch of the x axis that is shaded."""
    mark: float | None = None
    """A place on the x axis with a dashed line."""


@dataclass(frozen=True)
class Bar:
    x: float
    y: float
    width: float
    height: float
    kind: str
    text: str


def line_panel(
    title: str,
    series: Mapping[str, Sequence[tuple[float, float]]],
    *,
    x_name: str = "epoch",
    y_range: tuple[float, float] | None = None,
    percent: bool = False,
    whole: bool = False,
    band: tuple[float, float] | None = None,
    mark: float | None = None,
) -> Panel | None:
    """Lines through points (x, y); points that are not numbers are left out. None if nothing is left.

    `whole`: a count, drawn from 0 on.
    """
    clean = {
        name: [(float(x), float(y)) for x, y in points if _is_number(x) and _is_number(y)]
        for name, points in series.items()
    }
    clean = {name: points for name, points in clean.items() if points}
    if not clean:
        return None
    xs = [x for points in clean.values() for x, _ in points]
    ys = [y for points in clean.values() for _, y in points]
    y_values = nice_ticks(*(y_range or (0.0 if whole else min(ys), max(ys))), 4)
    if whole:
        y_values = [y for y in y_values if y == int(y)]
    low, high = (min(y_values[0], min(ys)), max(y_values[-1], max(ys)))
    first, last = min(xs), max(xs)

    def at_x(x: float) -> float:
        along = (x - first) / (last - first) if last > first else 0.5
        return round(LEFT + (WIDTH - LEFT - RIGHT) * along, 1)

    def at_y(y: float) -> float:
        return round(HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * (y - low) / max(high - low, 1e-12), 1)

    def text(y: float) -> str:
        return f"{100 * y:.1f} %" if percent else short_number(y)

    # As many as no tick needs more than.
    digits = next((n for n in range(4) if all(abs(round(100 * y, n) - 100 * y) < 1e-9 for y in y_values)), 4)

    curves = []
    for name, points in clean.items():
        places = [(at_x(x), at_y(y)) for x, y in points]
        path = "M" + " L".join(f"{x:g} {y:g}" for x, y in places)
        curves.append(Curve(name, path, text(points[-1][1]), tuple(places) if len(places) <= 25 else ()))
    within = [x for x in nice_ticks(first, last, 5) if first <= x <= last] or [first]
    return Panel(
        title=title,
        curves=tuple(curves),
        x_ticks=tuple(Tick(at_x(x), short_number(x)) for x in within),
        y_ticks=tuple(Tick(at_y(y), f"{100 * y:.{digits}f} %" if percent else short_number(y)) for y in y_values),
        x_name=x_name,
        band=None if band is None else (at_x(min(max(band[0], first), last)), at_x(min(max(band[1], first), last))),
        mark=None if mark is None else at_x(min(max(mark, first), last)),
    )


def bars(values: Sequence[tuple[float, str, str]], *, width: float, height: float) -> list[Bar]:
    """Standing bars side by side; each value comes with its kind (its colour) and a text."""
    most = max((value for value, _, _ in values), default=0.0)
    step = width / max(len(values), 1)
    gap = 0.2 * step if step > 3 else 0.0
    return [
        Bar(
            round(i * step, 2),
            round(height - height * value / (most or 1.0), 2),
            round(step - gap, 2),
            round(height * value / (most or 1.0), 2),
            kind,
            text,
        )
        for i, (value, kind, text) in enumerate(values)
    ]


def nice_ticks(low: float, high: float, n: int) -> list[float]:
    """About `n` round numbers that enclose low and high."""
    if not high > low:
        pad = abs(low) * 0.1 or 1.0
        low, high = low - pad, high + pad
    raw = (high - low) / n
    magnitude = 10.0 ** floor(log10(raw))
    step = next(m * magnitude for m in (1, 2, 2.5, 5, 10) if m * magnitude >= raw * 0.999)
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


def short_number(value: float) -> str:
    """At most four figures: 12,300 as 12.3k, 0.00012 as 1.2e-4."""
    size = abs(value)
    if size >= 1e6:
        return f"{value / 1e6:.3g}M"
    if size >= 1e4:
        return f"{value / 1e3:.3g}k"
    if size >= 1000 or value == int(value):
        return f"{value:.0f}"
    if size < 1e-3:
        return f"{value:.1e}".replace("e-0", "e-").replace("e+0", "e")
    return f"{value:.3g}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
