"""Settings that were tried, best first, and whether the best one is better than the default beyond chance.

Folds differ in how hard they are, so settings are compared fold by fold: what counts is a setting's lead over the default in the
same fold, and whether it is larger than the lead differs between folds, and than so few images leave open.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from math import sqrt
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from newkind import __version__
from newkind.config import DiscoverConfig, default_recipe
from newkind.errors import RunError
from newkind.runs.run import Run

__all__ = ["Lead", "Ranking", "Tried", "next_command", "rank", "write_ranking"]

FORMAT = 1
SCORES = ("all", "old", "new")
OPTIONS = {
    "trunk": {
        "backbone": "--backbone",
        "weights": "--weights",
        "random_weights": "--random-weights",
        "image_size": "--image-size",
        "n_views": "--views",
        "n_tuned": "--tuned-blocks",
        "dtype": "--dtype",
        "device": "--device",
    },
    "training": {"batch_size": "--batch-size", "learning_rate": "--learning-rate", "seed": "--seed"},
}
"""Of `discover`, for those fields that a tuning can be asked for."""


@dataclass(frozen=True, kw_only=True)
class Tried:
    """A setting, and what it scored."""

    settings: dict[str, str]
    is_default: bool
    folds: tuple[dict[str, float | None], ...]
    """All, Old and New of every fold; None for one that does not exist."""

    def values(self, name: str) -> list[float]:
        """In per cent, of those folds that have one."""
        return [100 * value for fold in self.folds if (value := fold[name]) is not None]

    def shown(self, name: str) -> str:
        """71.3 ± 2.0"""
        values = self.values(name)
        if not values:
            return "-"
        return f"{fmean(values):.1f}" + (f" ± {stdev(values):.1f}" if len(values) > 1 else "")

    def words(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.settings.items())

    def to_json(self) -> dict[str, Any]:
        scores = {}
        for name in SCORES:
            values = self.values(name)
            scores[name] = {
                "mean": round(fmean(values), 2) if values else None,
                "std": round(stdev(values), 2) if len(values) > 1 else None,
                "folds": [None if fold[name] is None else round(100 * fold[name], 2) for fold in self.folds],  # type: ignore[operator]
            }
        return {"settings": self.settings, "default": self.is_default, **scores}


@dataclass(frozen=True, kw_only=True)
class Lead:
    """Of the best setting over the default, in points of All."""

    folds: tuple[float, ...]
    spread: float
    """The largest of: the standard deviation of this lead between folds; the usual one of all settings; the standard error of an
    accuracy over that many images, for folds that agree by chance."""
    n_images: int

    @property
    def mean(self) -> float:
        return fmean(self.folds)

    @property
    def counts(self) -> bool:
        return self.mean > self.spread


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """What a tuning came to."""

    rows: tuple[Tried, ...]
    """Best first."""
    lead: Lead | None
    """None if the default is the best, or could not be run."""
    command: str
    """What to do next."""
    about: dict[str, Any]
    failures: tuple[str, ...] = ()

    @property
    def best(self) -> Tried:
        return self.rows[0]

    @property
    def chosen(self) -> dict[str, str]:
        """The settings to take: none if the default is as good."""
        return {} if self.best.is_default or (self.lead and not self.lead.counts) else self.best.settings

    def verdict(self) -> str:
        """In sentences."""
        if self.best.is_default:
            return f"Nothing that was tried is better than the default ({self.best.words()})."
        if self.lead is None:
            return f"{self.best.words()} is the best of what was tried; the default could not be run."
        folds = ", ".join(f"{value:+.1f}" for value in self.lead.folds)
        lead = f"{self.best.words()} leads the default by {self.lead.mean:.1f} points of All (by fold: {folds})"
        left_open = f"than the ± {self.lead.spread:.1f} that folds and {self.lead.n_images:,} images leave open"
        if self.lead.counts:
            return f"{lead}: more {left_open}."
        return f"{lead}, which is no more {left_open}: the default is as good."

    def to_json(self) -> dict[str, Any]:
        lead = self.lead and {
            "mean": round(self.lead.mean, 2),
            "spread": round(self.lead.spread, 2),
            "folds": [round(value, 2) for value in self.lead.folds],
            "counts": self.lead.counts,
        }
        return {
            "format": FORMAT,
            "newkind": __version__,
            **self.about,
            "rows": [row.to_json() for row in self.rows],
            "lead": lead,
            "verdict": self.verdict(),
            "chosen": self.chosen,
            "command": self.command,
            "failures": list(self.failures),
        }


def rank(
    rows: Sequence[Tried],
    config: DiscoverConfig,
    *,
    data: str,
    n_images: int,
    fixed: Mapping[str, Any] | None = None,
    failures: Sequence[str] = (),
) -> Ranking:
    """rows: settings that are finished. config: of any of them. data: as the user calls it. n_images: labelled ones.
    fixed: settings that all have."""
    if not rows:
        raise RunError("No setting was finished.", fix=failures[0] if failures else "Run the same command again.")
    # At equal All, the default goes first.
    ordered = sorted(rows, key=lambda row: (-fmean(row.values("all")), not row.is_default))
    default = next((row for row in rows if row.is_default), None)
    lead = None
    if default is not None and not ordered[0].is_default:
        lead = _lead(ordered[0], default, [row for row in rows if row is not default], n_images)
    about = {
        "data": data,
        "method": config.method_name,
        "recipe": config.recipe,
        "epochs": config.training.epochs,
        "folds": len(rows[0].folds),
        "seed": config.training.seed,
        "n_images": n_images,
        "n_classes": config.method.n_categories,
    }
    found = Ranking(rows=tuple(ordered), lead=lead, command="", about=about, failures=tuple(failures))
    command = next_command(config, data=data, settings=dict(fixed or {}) | found.chosen, tuned=bool(found.chosen))
    return Ranking(rows=found.rows, lead=lead, command=command, about=about, failures=found.failures)


def _lead(best: Tried, default: Tried, others: Sequence[Tried], n_images: int) -> Lead:
    own = _leads(best, default)
    usual = sqrt(fmean(stdev(_leads(row, default)) ** 2 for row in others))
    share = fmean(default.values("all")) / 100
    counting = 100 * sqrt(share * (1 - share) / n_images)
    return Lead(folds=tuple(own), spread=max(stdev(own), usual, counting), n_images=n_images)


def _leads(row: Tried, default: Tried) -> list[float]:
    return [a - b for a, b in zip(row.values("all"), default.values("all"), strict=True)]


def next_command(config: DiscoverConfig, *, data: str, settings: Mapping[str, Any], tuned: bool) -> str:
    """The `discover` of the whole data under the same conditions. tuned: also for as long as the settings were tried for."""
    words = ["newkind", "discover", data, "--out", "RUN"]
    if config.method_name != "simgcd":
        words += ["--method", config.method_name]
    if config.recipe != default_recipe(config.method_name, config.backbone.name):
        words += ["--recipe", config.recipe]
    words += _options(config)
    if tuned:
        words += ["--epochs", str(config.training.epochs)]
    for name, value in settings.items():
        words += ["--set", f"{name}={value}"]
    return shlex.join(words)


def _options(config: DiscoverConfig) -> Iterator[str]:
    for part, options in OPTIONS.items():
        own = getattr(config, part)
        for field in fields(own):
            value = getattr(own, field.name)
            if field.name in options and value != field.default:
                yield options[field.name]
                if not isinstance(value, bool):
                    yield str(value)


def write_ranking(ranking: Ranking, out: Path) -> None:
    """tune.json and tune.md, each whole or not at all."""
    run, about = Run(out), ranking.about
    run.write_json(out / "tune.json", ranking.to_json())
    names = list(ranking.best.settings)
    lines = [
        f"# Settings of {about['method']} on {about['data']}",
        "",
        f"Accuracy in %, mean ± standard deviation over {about['folds']} folds: in each, about half of the {about['n_classes']} known "
        f"classes were held out as if they were new. Recipe {about['recipe']}, {about['epochs']} epochs, seed {about['seed']}.",
        "",
        "| " + " | ".join([*names, "All", "Old", "New", ""]) + " |",
        "|---" * (len(names) + 4) + "|",
    ]
    for row in ranking.rows:
        cells = [*row.settings.values(), *map(row.shown, SCORES), "default" if row.is_default else ""]
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", ranking.verdict(), *(f"\nFailed: {sentence}" for sentence in ranking.failures)]
    lines += ["", "```console", f"$ {ranking.command}", "```", ""]
    run.write_text(out / "tune.md", "\n".join(lines))
