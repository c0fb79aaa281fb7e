"""Grouped bars: error kinds, the pilot study, rules for the number of categories, times."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from newkind.experiments.paper.figures.sheet import (
    COLOURS,
    PARTS,
    Axes,
    Layout,
    colours_of,
    draw_by_data,
    sheet,
)
from newkind.experiments.paper.inference import inference_rows
from newkind.experiments.paper.results import ERRORS, Finished
from newkind.experiments.spread import Spread

__all__ = ()

THREE_PARTS = Layout(columns=3, height=2.9)
HATCHES = {"joint": "//"}


def deviations(spreads: Sequence[Spread | None]) -> list[float] | None:
    """Lengths of error bars; None for single runs."""
    found = [0.0 if spread is None else spread.std or 0.0 for spread in spreads]
    return found if any(found) else None


def _bars(
    panel: Axes,
    places: Sequence[str],
    series: Mapping[str, Sequence[Spread | None]],
    colours: Sequence[str],
    hatches: Sequence[str] = ("",),
) -> None:
    """Draw one group of bars per place, one colour per series."""
    width = 0.8 / max(len(series), 1)
    for i, (label, spreads) in enumerate(series.items()):
        xs = [place + (i - (len(series) - 1) / 2) * width for place in range(len(places))]
        panel.bar(
            xs,
            [0.0 if spread is None else spread.mean for spread in spreads],
            width * 0.94,
            yerr=deviations(spreads),
            color=colours[i % len(colours)],
            hatch=hatches[i % len(hatches)] or None,
            edgecolor="white",
            linewidth=0.5,
            error_kw={"elinewidth": 0.9, "capsize": 1.5, "ecolor": "#333333"},
            label=label,
        )
    panel.set_xticks(range(len(places)), list(places))
    panel.grid(False, axis="x")
    panel.tick_params(axis="x", length=0)


def draw_errors(name: str, finished: Sequence[Finished], out: Path, *, prefix: str = "") -> list[Path]:
    """The four kinds of errors, one colour per row; `prefix` precedes each label in the legend."""

    def draw(panels: list[Axes], title: str, lines: list[Finished]) -> None:
        series = {f"{prefix}{line.row.label}": [line.spread(kind) for kind in ERRORS] for line in lines}
        _bars(panels[0], list(ERRORS.values()), series, colours_of(lines))
        panels[0].set_title(title)

    layout = Layout(width=4.6, ylabel="errors (% of all unlabelled images)")
    return draw_by_data(out / name, finished, draw, layout)


def _draw_parts(
    panels: list[Axes],
    title: str,
    place_of: Callable[[Finished], str],
    series_of: Mapping[str, list[Finished]],
    style: Mapping[str, Sequence[str]],
) -> None:
    """Draw All, Old and New in one panel each, with bars of every series at every place."""
    places = list(dict.fromkeys(place_of(line) for lines in series_of.values() for line in lines))
    own = {label: {place_of(line): line for line in lines} for label, lines in series_of.items()}
    for panel, (key, (part, _)) in zip(panels, PARTS.items(), strict=True):
        series = {
            label: [by_place[place].spread(key) if place in by_place else None for place in places]
            for label, by_place in own.items()
        }
        _bars(panel, [place.replace(" the ", "\nthe ") for place in places], series, **style)
        panel.set_title(f"{title}: {part}")


def draw_pilot(name: str, finished: Sequence[Finished], out: Path) -> list[Path]:
    """All, Old and New by supervision. Colours distinguish the features; hatched bars are joint training."""

    def draw(panels: list[Axes], title: str, lines: list[Finished]) -> None:
        kinds: dict[tuple[str, str], list[Finished]] = {}
        for line in lines:
            kinds.setdefault((line.row.values["classifier_on"], line.row.values["training"]), []).append(line)
        ordered = sorted(kinds)
        series = {f"on the {on}, {training}": kinds[on, training] for on, training in ordered}
        style = {
            "colours": [COLOURS[0] if on == "backbone" else COLOURS[1] for on, _ in ordered],
            "hatches": [HATCHES.get(training, "") for _, training in ordered],
        }
        _draw_parts(panels, title, lambda line: line.row.label, series, style)

    return draw_by_data(out / name, finished, draw, THREE_PARTS)


def draw_unknown_k(name: str, finished: Sequence[Finished], out: Path) -> list[Path]:
    """All, Old and New by rule for the number of categories."""

    def draw(panels: list[Axes], title: str, lines: list[Finished]) -> None:
        series: dict[str, list[Finished]] = {}
        for line in lines:
            series.setdefault(line.row.label, []).append(line)
        style = {"colours": colours_of([own[0] for own in series.values()])}
        _draw_parts(panels, title, lambda line: str(line.row.values["rule"]), series, style)

    return draw_by_data(out / name, finished, draw, THREE_PARTS)


def draw_inference(name: str, finished: Sequence[Finished], out: Path) -> list[Path]:
    """Seconds of both ways of assigning."""
    rows = [row for line in finished for row in inference_rows(line)]
    paths: list[Path] = []
    if not rows:
        return paths
    datas = list(dict.fromkeys(row["data"] for row in rows))
    with sheet(paths, out / name, 1, width=5.6, height=1.3 + 0.75 * len(datas)) as drawn:
        panel = drawn.panels[0]
        for i, label in enumerate(dict.fromkeys(row["label"] for row in rows)):
            own = [row for row in rows if row["label"] == label]
            places = [datas.index(row["data"]) + (i - 0.5) * 0.36 for row in own]
            bars = panel.barh(places, [row["seconds"] for row in own], 0.33, color=COLOURS[i], label=label)
            panel.bar_label(bars, [f"{row['seconds']:.3g} s" for row in own], padding=3, fontsize=8)
        panel.set_yticks(range(len(datas)), datas)
        panel.set_xscale("log")
        panel.invert_yaxis()
        panel.margins(x=0.2)
        panel.grid(False, axis="y")
        panel.set_xlabel("time to assign all unlabelled images, without features (s)")
        drawn.legend()
    return paths
