"""Every method by its name, and its config from a recipe and settings given as text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from math import isfinite
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from newkind.errors import ConfigError
from newkind.methods.centres import ClusteringConfig
from newkind.methods.debiaspl import DebiasPL, DebiasPLConfig
from newkind.methods.gcd import GCD, GCDConfig
from newkind.methods.kmeans import KMeans
from newkind.methods.method import Method, MethodConfig
from newkind.methods.orca import ORCA, ORCAConfig
from newkind.methods.rankstats import RankStats, RankStatsConfig
from newkind.methods.simgcd import BENCHMARK_EPSILON, SimGCD, SimGCDConfig, simgcd_recipe
from newkind.methods.uno import UNO, UNOConfig

__all__ = ["METHODS", "Entry", "build_method", "find_method", "method_config"]


@dataclass(frozen=True)
class Entry:
    """A method: how its heads are built, and from which config."""

    method: type[Method]
    config: type[MethodConfig]
    title: str
    about: str
    """In one line."""


METHODS: dict[str, Entry] = {
    "simgcd": Entry(
        SimGCD, SimGCDConfig, "SimGCD", "A parametric classifier trained jointly with the representation; the default."
    ),
    "gcd": Entry(GCD, GCDConfig, "GCD", "Contrastive training of the representation, then semi-supervised k-means."),
    "kmeans": Entry(KMeans, ClusteringConfig, "k-means", "k-means on the frozen features; nothing is trained."),
    "rankstats": Entry(
        RankStats,
        RankStatsConfig,
        "RS+",
        "Rank statistics (AutoNovel): pairs whose strongest features agree belong together.",
    ),
    "uno": Entry(UNO, UNOConfig, "UNO+", "Swapped prediction of Sinkhorn self-labels, with several heads."),
    "orca": Entry(
        ORCA, ORCAConfig, "ORCA", "A margin that adapts to the uncertainty, nearest-neighbour pairs, mean entropy."
    ),
    "debiaspl": Entry(
        DebiasPL,
        DebiasPLConfig,
        "DebiasPL",
        "FixMatch pseudo-labels of a slow teacher with debiased logits, and GCD's contrastive terms.",
    ),
}


def find_method(name: str) -> Entry:
    """The entry of a method; an unknown name is an error that lists the known ones."""
    if name not in METHODS:
        raise ConfigError(f"There is no method '{name}'.", fix=f"Methods are {', '.join(METHODS)}.")
    return METHODS[name]


def build_method(name: str, dim: int, config: MethodConfig) -> Method:
    """The method's heads for features of dimension `dim`, freshly initialised from torch's global generator."""
    return find_method(name).method(dim, config)


def method_config(
    name: str,
    *,
    n_categories: int,
    recipe: str = "release",
    benchmark: str = "",
    settings: dict[str, Any] | None = None,
) -> MethodConfig:
    """The recipe's config with `settings` (field -> value, or text as from a command line) put over it."""
    kind = find_method(name).config
    typed = {field: _typed(kind, field, value) for field, value in (settings or {}).items()}
    if name != "simgcd":
        if recipe != "release":
            raise ConfigError(f"{name} has no recipe '{recipe}'.", fix="Recipes other than release are SimGCD's.")
        return kind(**{"n_categories": n_categories} | typed)
    base = simgcd_recipe(recipe, n_categories=n_categories, entropy_weight=BENCHMARK_EPSILON.get(benchmark, 1.0))
    return SimGCDConfig(**{f.name: getattr(base, f.name) for f in fields(base)} | typed)


def _typed(kind: type[MethodConfig], field: str, value: Any) -> Any:
    """A setting as the type that its field has."""
    hints = get_type_hints(kind)
    settings = sorted(set(hints) - {"n_categories"})
    if field not in settings:
        fix = "It has its own option, --n-categories." if field in hints else f"Settings are {', '.join(settings)}."
        raise ConfigError(f"{kind.__name__} has no setting '{field}'.", fix=fix)
    wanted, empty = hints[field], ""
    if isinstance(wanted, UnionType):  # float | None
        if value is None or str(value).lower() == "none":
            return None
        wanted, empty = next(t for t in get_args(wanted) if t is not type(None)), " or none"
    allowed = get_args(wanted) if get_origin(wanted) is Literal else ()
    try:
        return _chosen(value, allowed) if allowed else READERS[wanted](value)
    except (ValueError, TypeError, OverflowError):
        what = ", ".join(allowed) if allowed else WORDS[wanted]
        raise ConfigError(f"{field} is {what}{empty}; got '{value}'.") from None


def _chosen(value: Any, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise ValueError
    return str(value)


def _whole(value: Any) -> int:
    number = int(value)
    if isinstance(value, bool) or (not isinstance(value, str) and number != value):
        raise ValueError
    return number


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isfinite(number := float(value)):
        raise ValueError
    return number


def _truth(value: Any) -> bool:
    word = str(value).lower()
    if word not in ("true", "false"):
        raise ValueError
    return word == "true"


READERS: dict[type, Callable[[Any], Any]] = {int: _whole, float: _number, bool: _truth, str: str}
WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
