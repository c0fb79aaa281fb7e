"""Bars beside each other: error kinds, the pilot study, rules for the number of categories, times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from newkind.experiments.paper.figures.sheet import COLOURS, PARTS, Axes, by_data, colours_of, sheet
from newkind.experiments.paper.inference import inference_rows
from newkind.experiments.paper.results import ERRORS, Finished
from newkind.experiments.spread import Spread

__all__ = ["deviations", "draw_errors", "draw_inference", "draw_pilot", "draw_unknown_k"]


def deviations(spreads: Sequence[Spread | None]) -> list[float] | None:
    """For error bars; None for single runs, which have none."""
    found = [0.0 if spread is None else spread.std or 0.0 for spread in spreads]
    return found if any(found) else None


def _bars(
    panel: Axes,
    places: Sequence[str],
    series: Mapping[str, Sequence[Spread | None]],
    colours: Sequence[str],
    hatches: Sequence[str] | None = None,
) -> None:
    """A group of bars a place, a colour a series."""
    width = 0.8 / max(len(series), 1)
    for i, (label, spreads) in enumerate(series.items()):
        xs = [place + (i - (len(series) - 1) / 2) * width for place in range(len(places))]
        panel.bar(
            xs,
            [0.0 if spread is None else spread.mean for spread in spreads],
            width * 0.94,
            yerr=deviations(spreads),
            color=colours[i % len(colours)],
            hatch=hatches[i % len(hatches)] if hatches else None,
            edgecolor="white",
            linewidth=0.5,
            error_kw={"elinewidth": 0.9, "capsize": 1.5, "ecolor": "#333333"},
            label=label,
        )
    panel.set_xticks(range(len(places)), list(places))
    panel.grid(False, axis="x")
    panel.tick_params(axis="x", length=0)


def draw_errors(name: str, finished: Sequence[Finished], out: Path, *, prefix: str = "") -> list[Path]:
    """The four kinds of errors, a colour a method (or an epsilon)."""
    groups = by_data(finished)
    paths: list[Path] = []
    if not groups:
        return paths
    with sheet(paths, out / name, len(groups), width=4.6) as drawn:
        for panel, (title, lines) in zip(drawn.panels, groups.items(), strict=True):
            series = {f"{prefix}{line.row.label}": [line.spread(kind) for kind in ERRORS] for line in lines}
            _bars(panel, list(ERRORS.values()), series, colours_of(lines))
            panel.set_title(title)
        drawn.panels[0].set_ylabel("errors, % of all unlabelled images")
        drawn.legend()
    return paths


def draw_pilot(name: str, finished: Sequence[Finished], out: Path) -> list[Path]:
    """All, Old and New under each supervision; colours say which features, hatching that training is joint."""
    groups = by_data(finished)
    paths: list[Path] = []
    if not groups:
        return paths
    with sheet(paths, out / name, 3, len(groups), width=4.0, height=2.9) as drawn:
        for i, (title, lines) in enumerate(groups.items()):
            places = list(dict.fromkeys(line.row.label for line in lines))
            kinds = list(
                dict.fromkeys((line.row.values["classifier_on"], line.row.values["training"]) for line in lines)
            )
            kinds.sort()
            own = {
                (line.row.label, line.row.values["classifier_on"], line.row.values["training"]): line for line in lines
            }
            for panel, (key, (part, _)) in zip(drawn.panels[3 * i : 3 * i + 3], PARTS.items(), strict=True):
                series = {
                    f"on the {on}, {training}": [
                        own[place, on, training].spread(key) if (place, on, training) in own else None
                        for place in places
                    ]
                    for on, training in kinds
                }
                colours = [COLOURS[0] if on == "backbone" else COLOURS[1] for on, _ in kinds]
                _bars(panel, places, series, colours, ["//" if training == "joint" else "" for _, training in kinds])
                panel.set_title(f"{title}: {part}")
            drawn.panels[3 * i].set_ylabel("accuracy, %")
        drawn.legend()
    return paths


def draw_unknown_k(name: str, finished: Sequence[Finished], out: Path) -> list[Path]:
    """All, Old and New under each rule for the number of categories."""
    groups = by_data(finished)
    paths: list[Path] = []
    if not groups:
        return paths
    with sheet(paths, out / name, 3, len(groups), width=4.0, height=2.9) as drawn:
        for i, (title, lines) in enumerate(groups.items()):
            rules = list(dict.fromkeys(str(line.row.values["rule"]) for line in lines))
            labels = list(dict.fromkeys(line.row.label for line in lines))
            own = {(line.row.label, str(line.row.values["rule"])): line for line in lines}
            colours = colours_of([next(line for line in lines if line.row.label == label) for label in labels])
            for panel, (key, (part, _)) in zip(drawn.panels[3 * i : 3 * i + 3], PARTS.items(), strict=True):
                series = {
                    label: [own[label, rule].spread(key) if (label, rule) in own else None for rule in rules]
                    for label in labels
                }
                _bars(panel, [rule.replace(" the ", "\nthe ") for rule in rules], series, colours)
                panel.set_title(f"{title}: {part}")
            drawn.panels[3 * i].set_ylabel("accuracy, %")
        drawn.legend()
    return paths


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
        panel.set_xlabel("seconds to assign all unlabelled images (features are there)")
        drawn.legend()
    return paths
