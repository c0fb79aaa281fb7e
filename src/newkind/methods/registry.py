"""Every method by its name, and its config from a recipe and settings given as text."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, fields
from typing import Any

from newkind.errors import ConfigError
from newkind.methods.centres import ClusteringConfig
from newkind.methods.debiaspl import DebiasPL, DebiasPLConfig
from newkind.methods.entry import Entry
from newkind.methods.gcd import GCD, GCDConfig
from newkind.methods.kmeans import KMeans
from newkind.methods.method import Method, MethodConfig
from newkind.methods.modern import Modern, ModernConfig
from newkind.methods.orca import ORCA, ORCAConfig
from newkind.methods.plugins import allow, find_plugin, plugins
from newkind.methods.rankstats import RankStats, RankStatsConfig
from newkind.methods.simgcd import SimGCD, SimGCDConfig, simgcd_recipe
from newkind.methods.uno import UNO, UNOConfig
from newkind.setting import read_setting

__all__ = ["METHODS", "Entry", "all_methods", "build_method", "find_method", "method_config", "resolve_method"]


METHODS: dict[str, Entry] = {
    "modern": Entry(
        Modern,
        ModernConfig,
        "SimGCD modern",
        "SimGCD's classifier, started from clusters in a frame learned from the labels. The default.",
    ),
    "simgcd": Entry(
        SimGCD,
        SimGCDConfig,
        "SimGCD",
        "A parametric classifier trained jointly with the representation, as published (recipes release, paper).",
    ),
    "gcd": Entry(GCD, GCDConfig, "GCD", "Contrastive training of the representation, then semi-supervised k-means."),
    "kmeans": Entry(KMeans, ClusteringConfig, "k-means", "k-means on the frozen features; nothing is trained."),
    "rankstats": Entry(
        RankStats,
        RankStatsConfig,
        "RS+",
        "Rank statistics (AutoNovel): pairs whose largest feature dimensions agree belong together.",
    ),
    "uno": Entry(UNO, UNOConfig, "UNO+", "Swapped prediction of Sinkhorn self-labels, with several heads."),
    "orca": Entry(
        ORCA, ORCAConfig, "ORCA", "A margin that adapts to the uncertainty, nearest-neighbour pairs, mean entropy."
    ),
    "debiaspl": Entry(
        DebiasPL,
        DebiasPLConfig,
        "DebiasPL",
        "FixMatch pseudo-labels of a slow teacher with debiased logits, and the contrastive terms of GCD.",
    ),
}


def find_method(name: str) -> Entry:
    """Entry of a method: one of Newkind's own, of an installed package, or a class named as `package.module:Class`.

    Raises
    ------
    ConfigError
        With the code `unknown-method` if there is none of this name.
    """
    found = METHODS.get(name) or find_plugin(name)
    if found is None:
        raise ConfigError(
            f"There is no method '{name}'.",
            fix=f"Methods: {', '.join([*METHODS, *plugins()])}. A method of another package needs that package.",
            code="unknown-method",
            method=name,
        )
    return found


def all_methods() -> dict[str, Entry]:
    """Newkind's own methods and those of installed packages that can be used, by name."""
    found = dict(METHODS)
    for name in plugins():
        with suppress(ConfigError):
            found.setdefault(name, find_method(name))
    return found


def resolve_method(method: str, recipe: str | None) -> str:
    """Name in the registry of a method and a recipe that the user named: recipe `modern` of SimGCD is a method of its own."""
    allow(method)
    find_method(method)
    if recipe is not None and method != "simgcd" and recipe != ("modern" if method == "modern" else "release"):
        raise ConfigError(
            f"{method} has no recipe '{recipe}'.", fix="Only simgcd has recipes.", code="unknown-recipe", recipe=recipe
        )
    return "modern" if recipe == "modern" else method


def build_method(name: str, dim: int, n_categories: int, config: MethodConfig) -> Method:
    """Heads of a method for features of dimension `dim`, initialised from torch's global generator."""
    if n_categories < 2:
        raise ConfigError(
            f"At least 2 categories are needed, got {n_categories}.", code="out-of-range", setting="n_categories"
        )
    return find_method(name).method(dim, n_categories, config)


def method_config(
    name: str, *, recipe: str = "release", benchmark: str = "", settings: dict[str, Any] | None = None
) -> MethodConfig:
    """Config of a method, from its recipe and settings.

    Parameters
    ----------
    name : str
        Name in the registry.
    recipe : {"release", "paper"}, default="release"
        Recipe of `simgcd`; other methods have none.
    benchmark : str, default=""
        Name of a published dataset, for the settings that the publication chose for it.
    settings : dict, optional
        Field to value, or to text as on a command line.

    Returns
    -------
    MethodConfig
    """
    kind = find_method(name).config
    known = sorted(item.name for item in fields(kind))
    for field in settings or {}:
        if field not in known:
            raise ConfigError(
                f"{name} has no setting '{field}'.",
                fix="Use `n_categories`." if field == "n_categories" else f"Settings: {', '.join(known)}.",
                code="unknown-setting",
                setting=field,
            )
    typed = {field: read_setting(kind, field, value) for field, value in (settings or {}).items()}
    base = simgcd_recipe(recipe, benchmark=benchmark) if name == "simgcd" else kind()
    return kind(**asdict(base) | typed)
