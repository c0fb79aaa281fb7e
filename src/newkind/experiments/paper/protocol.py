"""What is the same for all runs of a study. Without torch, so that the command line can make options of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite
from typing import Literal

from newkind.config import BackboneConfig
from newkind.errors import ConfigError
from newkind.setting import check_settings, setting

__all__ = ["Protocol", "read_epsilons", "read_methods"]


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """How every run of a study is trained.

    Epochs and recipe default to those of SimGCD's published runs; learning rate, batch size and weight decay to those that
    were published for each method.

    Parameters
    ----------
    seeds : int, default=3
        Number of runs per row, with seeds 0, 1, ...
    epochs : int, default=200
        Number of epochs.
    batch_size : int, optional
        Batch size per process. Default: that of each method.
    equal : bool, default=False
        Use the learning rate, batch size and weight decay of SimGCD (0.1, 128, 5e-5) for all methods.
    recipe : {"release", "paper"}, default="release"
        Recipe of simgcd. `modern` is a method of its own.
    online : bool, default=False
        Compute new random views in every epoch instead of caching tokens.
    methods : tuple of str, default=()
        Methods to compare. Default: those of the study.
    epsilons : tuple of float, default=()
        Weights of the entropy term. Default: those of the study.
    backbone : BackboneConfig, optional
        Configuration of the backbone.
    """

    seeds: int = setting(3, at_least=1, at_most=1000)
    epochs: int = setting(200, at_least=1, at_most=10**6)
    batch_size: int | None = setting(None, at_least=2, at_most=2**20)
    equal: bool = False
    recipe: Literal["release", "paper"] = "release"
    online: bool = False
    methods: tuple[str, ...] = setting((), option=None)
    epsilons: tuple[float, ...] = setting((), option=None)
    backbone: BackboneConfig = field(default_factory=BackboneConfig, metadata={"option": None})

    def __post_init__(self) -> None:
        check_settings(self)

    def seed_values(self, *, only_first: bool = False) -> range:
        """Seeds of the runs of a row.

        Parameters
        ----------
        only_first : bool, default=False
            Whether the study uses one seed.

        Returns
        -------
        range
        """
        return range(1 if only_first else self.seeds)


def read_methods(text: str) -> tuple[str, ...]:
    """Methods written as simgcd,gcd, each once.

    Parameters
    ----------
    text : str
        Names, separated by commas.

    Returns
    -------
    tuple of str
    """
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if text and not names:
        raise ConfigError(f"`methods` must be names such as simgcd,gcd, got '{text}'.", code="unknown-method")
    return names


def read_epsilons(text: str) -> tuple[float, ...]:
    """Weights of the entropy term written as 0,1,2, each once.

    Parameters
    ----------
    text : str
        Numbers, separated by commas.

    Returns
    -------
    tuple of float

    Raises
    ------
    ConfigError
        With code `not-a-number` for a word that is not a number of 0 or more.
    """
    found = []
    for part in (part.strip() for part in text.split(",") if part.strip()):
        try:
            value = float(part)
        except ValueError:
            value = -1.0
        if not (isfinite(value) and value >= 0):
            raise ConfigError(
                f"`epsilons` must be numbers of 0 or more, such as 0,1,2, got '{part}'.",
                code="not-a-number",
                setting="epsilons",
            )
        found.append(value)
    return tuple(dict.fromkeys(found))
