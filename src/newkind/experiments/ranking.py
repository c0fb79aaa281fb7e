"""Ranking of settings that were tried, and whether the best one is better than the default beyond chance.

Hold-out problems differ in difficulty, so settings are compared within each fold: what counts is the lead of a setting over
the default in the same fold, and whether it exceeds the variation of the lead between folds and the standard error of an
accuracy over so few images.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from newkind import __version__
from newkind.atomic import write_json, write_text
from newkind.errors import RunError
from newkind.experiments.candidates import shown_settings
from newkind.experiments.spread import Spread, spread_of

__all__ = ["Lead", "Ranking", "Tried", "rank", "write_ranking"]

FORMAT = 2
SCORES = ("all", "old", "new")


@dataclass(frozen=True, kw_only=True)
class Tried:
    """Scores of one combination of settings.

    Parameters
    ----------
    settings : dict of str to str
        Values of the settings that were tried.
    is_default : bool
        Whether these are the default values.
    folds : tuple of dict
        Accuracies `all`, `old` and `new` per fold, from 0 to 1; None for one that does not exist.
    """

    settings: dict[str, str]
    is_default: bool
    folds: tuple[Mapping[str, float | None], ...]

    @property
    def overall(self) -> list[float]:
        """All per fold, in percent."""
        return [100 * (fold["all"] or 0.0) for fold in self.folds]

    def spread(self, name: str) -> Spread | None:
        """Mean and standard deviation of an accuracy over folds.

        Parameters
        ----------
        name : {"all", "old", "new"}
            Which accuracy.

        Returns
        -------
        Spread or None
            In percent; None if there is no value.
        """
        return spread_of((fold[name] for fold in self.folds), times=100)

    def shown(self, name: str) -> str:
        """`spread` as text, such as "71.3 ± 2.0"; a dash if there is no value."""
        return str(self.spread(name) or "-")

    def to_json(self) -> dict[str, Any]:
        """Settings and accuracies in percent, as JSON."""
        scores = {}
        for name in SCORES:
            spread = self.spread(name)
            scores[name] = {
                "mean": None if spread is None else round(spread.mean, 2),
                "std": None if spread is None or spread.std is None else round(spread.std, 2),
                "folds": [None if value is None else round(100 * value, 2) for value in (f[name] for f in self.folds)],
            }
        return {"settings": self.settings, "default": self.is_default, **scores}


@dataclass(frozen=True, kw_only=True)
class Lead:
    """Lead of the best settings over the default, in percentage points of All.

    Parameters
    ----------
    folds : tuple of float
        Lead per fold.
    uncertainty : float
        The largest of: the standard deviation of this lead between folds; the root mean square of those of all settings;
        the standard error of an accuracy over `n_images` images, for folds that agree by chance.
    n_images : int
        Number of labelled images.
    """

    folds: tuple[float, ...]
    uncertainty: float
    n_images: int

    @property
    def mean(self) -> float:
        """Mean over folds."""
        return fmean(self.folds)

    @property
    def is_clear(self) -> bool:
        """Whether the mean is larger than the uncertainty."""
        return self.mean > self.uncertainty


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """Result of a tuning.

    Parameters
    ----------
    rows : tuple of Tried
        All settings that were tried, the best first.
    lead : Lead or None
        Lead of the best settings; None if the default is the best or failed.
    about : dict
        Data, method, number of epochs and other facts about the tuning, as JSON.
    command : str, default=""
        Command that discovers categories in the whole data with the chosen settings.
    failures : tuple of str, default=()
        Runs that failed, with the reasons.
    """

    rows: tuple[Tried, ...]
    lead: Lead | None
    about: dict[str, Any] = field(default_factory=dict)
    command: str = ""
    failures: tuple[str, ...] = ()

    @property
    def best(self) -> Tried:
        """Settings with the highest mean accuracy."""
        return self.rows[0]

    @property
    def chosen(self) -> dict[str, str]:
        """Settings to use: those of the best row, or none if the default is as good."""
        return {} if self.best.is_default or (self.lead and not self.lead.is_clear) else self.best.settings

    def verdict(self) -> str:
        """Which settings to use and why, in one sentence."""
        words = shown_settings(self.best.settings)
        if self.best.is_default:
            return f"Nothing that was tried is better than the default ({words})."
        if self.lead is None:
            return f"{words} is the best of what was tried; the default failed."
        folds = ", ".join(f"{value:+.1f}" for value in self.lead.folds)
        lead = f"{words} is better than the default by {self.lead.mean:.1f} points of All (per fold: {folds})"
        uncertainty = f"the uncertainty of ± {self.lead.uncertainty:.1f} from folds and {self.lead.n_images:,} images"
        if self.lead.is_clear:
            return f"{lead}, which is more than {uncertainty}."
        return f"{lead}, which is within {uncertainty}: keep the default."

    def to_json(self) -> dict[str, Any]:
        """Content of tune.json."""
        lead = self.lead and {
            "mean": round(self.lead.mean, 2),
            "uncertainty": round(self.lead.uncertainty, 2),
            "folds": [round(value, 2) for value in self.lead.folds],
            "is_clear": self.lead.is_clear,
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


def rank(rows: Sequence[Tried], *, n_images: int) -> Ranking:
    """Order settings by their mean accuracy and compare the best with the default.

    Parameters
    ----------
    rows : sequence of Tried
        Settings with a score in every fold.
    n_images : int
        Number of labelled images.

    Returns
    -------
    Ranking

    Raises
    ------
    RunError
        With code `nothing-finished` if there are no rows.

    Examples
    --------
    >>> scores = [(0.70, 0.90), (0.76, 0.95)]
    >>> rows = [
    ...     Tried(settings={"x": str(i)}, is_default=i == 0, folds=tuple({"all": v, "old": v, "new": v} for v in folds))
    ...     for i, folds in enumerate(scores)
    ... ]
    >>> rank(rows, n_images=1000).chosen
    {'x': '1'}
    """
    if not rows:
        raise RunError("No settings were finished in all folds.", fix="Repeat the command.", code="nothing-finished")
    # With equal accuracy the default comes first.
    ordered = sorted(rows, key=lambda row: (-fmean(row.overall), not row.is_default))
    default = next((row for row in rows if row.is_default), None)
    lead = None
    if default is not None and not ordered[0].is_default:
        lead = _lead(ordered[0], default, [row for row in rows if row is not default], n_images)
    return Ranking(rows=tuple(ordered), lead=lead)


def _lead(best: Tried, default: Tried, others: Sequence[Tried], n_images: int) -> Lead:
    own = _leads(best, default)
    usual = sqrt(fmean(stdev(_leads(row, default)) ** 2 for row in others))
    share = fmean(default.overall) / 100
    standard_error = 100 * sqrt(share * (1 - share) / n_images)
    return Lead(folds=tuple(own), uncertainty=max(stdev(own), usual, standard_error), n_images=n_images)


def _leads(row: Tried, default: Tried) -> list[float]:
    """Lead of one row over the default per fold, in percentage points."""
    return [a - b for a, b in zip(row.overall, default.overall, strict=True)]


def write_ranking(ranking: Ranking, out: Path) -> None:
    """Write tune.json and tune.md.

    Parameters
    ----------
    ranking : Ranking
        Result of a tuning.
    out : Path
        Existing folder.
    """
    about = ranking.about
    write_json(out / "tune.json", ranking.to_json())
    names = list(ranking.best.settings)
    recipe = f", recipe {about['recipe']}" if about.get("recipe") else ""
    lines = [
        f"# Settings of {about['method']} on {about['data']}",
        "",
        f"Accuracy in %, mean ± standard deviation over {about['folds']} folds. In each fold, about half of the "
        f"{about['n_classes']} known classes were held out and treated as new. Method {about['method']}{recipe}, "
        f"{about['epochs']} epochs, seed {about['seed']}.",
        "",
        "| " + " | ".join([*names, "All", "Old", "New", ""]) + " |",
        "|---" * (len(names) + 4) + "|",
    ]
    for row in ranking.rows:
        cells = [*row.settings.values(), *map(row.shown, SCORES), "default" if row.is_default else ""]
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", ranking.verdict(), *(f"\nFailed: {sentence}" for sentence in ranking.failures)]
    lines += ["", "```console", f"$ {ranking.command}", "```", ""]
    write_text(out / "tune.md", "\n".join(lines))
