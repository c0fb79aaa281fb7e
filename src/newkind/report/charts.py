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
    "MatrixLayout",
    "Panel",
    "Series",
    "Tick",
    "bars",
    "line_panel",
    "matrix_layout",
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


@dataclass(frozen=True, kw_only=True)
class MatrixLayout:
    """Geometry of a matrix with a title on each axis, in SVG units.

    Parameters
    ----------
    unit, gap : float
        Side of a cell, and the gap between cells that is part of it.
    left, below : float
        Room for names and titles beside and below the matrix.
    width, height : float
        Size of the matrix.
    faintest : float
        Opacity of the smallest share.
    """

    unit: float
    gap: float
    left: float
    below: float
    width: float
    height: float
    faintest: float

    @property
    def total_width(self) -> float:
        """Width with names and title."""
        return self.left + self.width + 8

    @property
    def total_height(self) -> float:
        """Height with names and title."""
        return self.height + self.below

    @property
    def shown_width(self) -> int:
        """Width on a large screen, in pixels."""
        return round(min(1.35 * self.total_width, 760))

    def opacity(self, share: float) -> float:
        """Opacity of a cell."""
        return round(min(self.faintest + (1 - self.faintest) * share, 1.0), 2)


def matrix_layout(rows: Sequence[str], columns: Sequence[str], *, is_named: bool) -> MatrixLayout:
    """Lay out a matrix; names of rows are cut to 20 characters, those of columns (which are tilted) to 16."""
    unit = 22.0 if is_named else max(700 / len(columns), 3.0)
    longest_row = min(max(map(len, rows)), 20) if is_named else 0
    longest_column = min(max(map(len, columns)), 16) if is_named else 0
    return MatrixLayout(
        unit=unit,
        gap=1.0 if is_named else 0.0,
        left=round(34 + 6.8 * longest_row, 1),
        below=36.0 + 6 * longest_column,
        width=unit * len(columns),
        height=unit * len(rows),
        faintest=0.12 if is_named else 0.3,
    )


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
    """Lay out a chart of lines; None if there are no numbers to draw."""
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
    """Lay out vertical bars; each value comes with its kind and its text."""
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
    if not high > low:
        pad = abs(low) * 0.1 or 1.0
        low, high = low - pad, high + pad
    raw = (high - low) / n
    magnitude = 10.0 ** floor(log10(raw))
    step = next(m * magnitude for m in (1, 2, 2.5, 5, 10) if m * magnitude >= raw * 0.999)
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


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
