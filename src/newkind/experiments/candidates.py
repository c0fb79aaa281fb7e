"""What a tuning tries: combinations of settings, each once, with the default always among them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from newkind.config import DiscoverConfig
from newkind.data import Collection, Features
from newkind.errors import ConfigError
from newkind.experiments.tune_config import TuneConfig
from newkind.methods.registry import find_method
from newkind.pipeline.configure import configure

__all__ = ["Candidate", "find_candidates"]

MODERN_TRIES = {"block_rate": ("0", "0.01", "0.03"), "mixture_balance": ("1", "4")}
"""Settings of `modern` that are tried by default."""
ONLY_LAST = 10**9
"""Epochs between two evaluations such that only the last epoch is evaluated."""


@dataclass(frozen=True)
class Candidate:
    """One combination of settings.

    Parameters
    ----------
    settings : dict of str to str
        Values of the settings that are tried, as on a command line.
    is_default : bool
        Whether these are the values of a run without tuning.
    """

    settings: dict[str, str]
    is_default: bool


def find_candidates(config: TuneConfig, problem: Collection) -> list[Candidate]:
    """All different combinations of the settings to try, the default first.

    Parameters
    ----------
    config : TuneConfig
        Configuration of the tuning.
    problem : Collection
        One of its hold-out problems.

    Returns
    -------
    list of Candidate

    Raises
    ------
    ConfigError
        With code `nothing-to-try` if the method has no default tries, `single-candidate` if nothing differs from the
        default, `needs-truth` for an oracle, or as `configure` for unknown settings and values.
    """
    default = tuning_config(config, problem, {})
    tries = config.tries or _default_tries(default, ready=isinstance(problem.catalog.items, Features))
    found = [default.method]
    for values in product(*tries.values()):
        chosen = dict(zip(tries, values, strict=True))
        method = tuning_config(config, problem, chosen).method
        if method.needs_truth:
            raise ConfigError(
                f"{shown_settings(chosen)} learns from the truth.",
                fix="Use another `supervision`.",
                code="needs-truth",
            )
        if method not in found:
            found.append(method)
    if len(found) == 1:
        raise ConfigError(
            "All values to try are those of the default.", fix="Try other values as well.", code="single-candidate"
        )
    return [
        Candidate({name: _text(getattr(method, name)) for name in tries}, method is default.method) for method in found
    ]


def _default_tries(default: DiscoverConfig, *, ready: bool) -> dict[str, tuple[str, ...]]:
    """Settings to try if none are given. Ready features and runs without training have no block that learns."""
    if default.method_name != "modern":
        name = default.method_name
        raise ConfigError(
            f"{find_method(name).title} has no settings that are tried by default.",
            fix=f"Give settings to try as NAME=VALUE,VALUE. newkind methods {name} shows the settings.",
            code="nothing-to-try",
            method=name,
        )
    fixed = ready or not default.training.epochs
    return {name: values for name, values in MODERN_TRIES.items() if not (fixed and name == "block_rate")}


def _text(value: Any) -> str:
    """Value as on a command line."""
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    return str(value).removesuffix(".0")


def shown_settings(settings: Mapping[str, Any]) -> str:
    """Settings as name=value, name=value."""
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def tuning_config(config: TuneConfig, problem: Collection, chosen: Mapping[str, Any]) -> DiscoverConfig:
    """Configuration of one run on a hold-out problem, with its true number of categories."""
    return configure(
        problem,
        method=config.method,
        recipe=config.recipe,
        settings={**config.settings, **chosen},
        amount=config.amount,
        training=replace(config.training, evaluate_every=ONLY_LAST),
        backbone=config.backbone,
    )
