"""Geometry of the page's charts. Templates draw it as SVG; colours come from the style sheet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10
from typing import Any

__all__ = [
    "Axes",
    "Bar",
    "Curve",
    "Panel",
    "Series",
    "Tick",
    "bars",
    "line_panel",
    "nice_ticks",
    "short_number",
]

WIDTH, HEIGHT = 360, 190
LEFT, RIGHT, TOP, BOTTOM = 44, 12, 10, 26
MAX_DOTS = 25  # Curves of at most this many points are drawn with dots.


@dataclass(frozen=True)
class Series:
    """Points of one line of a chart.

    Parameters
    ----------
    name : str
        Name in the legend.
    points : sequence of (x, y)
        Points in order of x. Those that are not finite numbers are left out.
    kind : str, default="plain"
        CSS class that decides the colour: plain, all, known, new or true.
    """

    name: str
    points: Sequence[tuple[Any, Any]]
    kind: str = "plain"


@dataclass(frozen=True, kw_only=True)
class Axes:
    """Axes of a chart of lines.

    Parameters
    ----------
    x_name : str, default="epoch"
        Title of the x axis.
    y_range : (float, float), default=None
        Least range of the y axis. Default: the range of the values.
    percent : bool, default=False
        Whether values are shares, shown as percentages.
    whole : bool, default=False
        Whether values are counts, drawn from 0 with whole numbers as ticks.
    """

    x_name: str = "epoch"
    y_range: tuple[float, float] | None = None
    percent: bool = False
    whole: bool = False


@dataclass(frozen=True)
class Tick:
    """Position and text of a tick."""

    at: float
    text: str


@dataclass(frozen=True)
class Curve:
    """One line of a panel: SVG path, last value as text, and dots if there are few points."""

    name: str
    kind: str
    path: str
    last: str
    dots: tuple[tuple[float, float], ...]


@dataclass(frozen=True, kw_only=True)
class Panel:
    """A chart of lines over a common x axis, in pixels.

    `band` is a shaded range of the x axis, `mark` the position of a dashed vertical line.
    """

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
    mark: float | None = None


@dataclass(frozen=True)
class Bar:
    """A vertical bar; `kind` is its CSS class, `text` its tooltip."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    text: str


@dataclass(frozen=True)
class _Scale:
    """Linear map from values to pixels."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        if not self.high > self.low:
            return round((self.start + self.end) / 2, 1)
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return round(self.start + (self.end - self.start) * share, 1)


def line_panel(
    title: str,
    series: Sequence[Series],
    axes: Axes | None = None,
    *,
    band: tuple[float, float] | None = None,
    mark: float | None = None,
) -> Panel | None:
    """Lay out a chart of lines.

    Parameters
    ----------
    title : str
        Title of the chart.
    series : sequence of Series
        Its lines.
    axes : Axes, default=None
        Its axes. Default: `Axes()`.
    band : (float, float), default=None
        Range of x to shade.
    mark : float, default=None
        Place of a dashed line on the x axis.

    Returns
    -------
    Panel or None
        None if there are no numbers to draw.
    """
    axes = axes or Axes()
    clean = [(s, [(float(x), float(y)) for x, y in s.points if _is_number(x) and _is_number(y)]) for s in series]
    clean = [(s, points) for s, points in clean if points]
    if not clean:
        return None
    xs = [x for _, points in clean for x, _ in points]
    ys = [y for _, points in clean for _, y in points]
    y_values = nice_ticks(*(axes.y_range or (0.0 if axes.whole else min(ys), max(ys))), 4)
    if axes.whole:
        y_values = [y for y in y_values if y == int(y)]
    at_x = _Scale(min(xs), max(xs), LEFT, WIDTH - RIGHT)
    at_y = _Scale(min(y_values[0], min(ys)), max(y_values[-1], max(ys)), HEIGHT - BOTTOM, TOP)
    x_values = [x for x in nice_ticks(min(xs), max(xs), 5) if min(xs) <= x <= max(xs)] or [min(xs)]
    return Panel(
        title=title,
        curves=tuple(_curve(s, points, at_x, at_y, percent=axes.percent) for s, points in clean),
        x_ticks=tuple(Tick(at_x(x), short_number(x)) for x in x_values),
        y_ticks=tuple(
            Tick(at_y(y), text) for y, text in zip(y_values, _tick_texts(y_values, axes.percent), strict=True)
        ),
        x_name=axes.x_name,
        band=None if band is None else (at_x(band[0]), at_x(band[1])),
        mark=None if mark is None else at_x(mark),
    )


def _curve(series: Series, points: list[tuple[float, float]], at_x: _Scale, at_y: _Scale, *, percent: bool) -> Curve:
    places = [(at_x(x), at_y(y)) for x, y in points]
    last = points[-1][1]
    return Curve(
        name=series.name,
        kind=series.kind,
        path="M" + " L".join(f"{x:g} {y:g}" for x, y in places),
        last=f"{100 * last:.1f} %" if percent else short_number(last),
        dots=tuple(places) if len(places) <= MAX_DOTS else (),
    )


def _tick_texts(values: list[float], percent: bool) -> list[str]:
    """Texts of ticks; percentages with as few decimals as keep all of them exact."""
    if not percent:
        return [short_number(value) for value in values]
    digits = next((n for n in range(4) if all(abs(round(100 * y, n) - 100 * y) < 1e-9 for y in values)), 4)
    return [f"{100 * value:.{digits}f} %" for value in values]


def bars(values: Sequence[tuple[float, str, str]], *, width: float, height: float) -> list[Bar]:
    """Lay out vertical bars.

    Parameters
    ----------
    values : sequence of (float, str, str)
        Value, kind and text of each bar.
    width, height : float
        Size of the chart; the largest value has the full height.

    Returns
    -------
    list of Bar
    """
    most = max((value for value, _, _ in values), default=0.0) or 1.0
    step = width / max(len(values), 1)
    gap = 0.2 * step if step > 3 else 0.0
    return [
        Bar(
            x=round(i * step, 2),
            y=round(height - height * value / most, 2),
            width=round(step - gap, 2),
            height=round(height * value / most, 2),
            kind=kind,
            text=text,
        )
        for i, (value, kind, text) in enumerate(values)
    ]


def nice_ticks(low: float, high: float, n: int) -> list[float]:
    """Return about n round numbers that enclose low and high."""
    largest = max(abs(low), abs(high), 1e-300)
    if not high - low > 1e-12 * largest:
        pad = 0.1 * largest if largest > 1e-300 else 1.0
        low, high = low - pad, high + pad
    raw = (high - low) / n
    magnitude = 10.0 ** floor(log10(raw))
    step = next(m * magnitude for m in (1, 2, 2.5, 5, 10) if m * magnitude >= raw * 0.999)
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    decimals = 3 - floor(log10(step))  # removes rounding errors, also of tiny steps
    return [round(i * step, decimals) for i in range(first, last + 1)]


def short_number(value: float) -> str:
    """Write a number with at most four figures: 12,300 as 12.3k, 0.00012 as 1.2e-4."""
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
