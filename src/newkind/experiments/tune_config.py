"""Configuration of a tuning, without torch, so that the command line can read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from newkind.config import MOST_VIEWS, BackboneConfig, EffortName, TrainingConfig
from newkind.effort import Amount
from newkind.errors import ConfigError
from newkind.setting import check_settings, setting

__all__ = ["EPOCHS", "TuneConfig", "read_tries"]

EPOCHS = 20


@dataclass(frozen=True, kw_only=True)
class TuneConfig:
    """Configuration of a tuning, without data and output folder.

    Parameters
    ----------
    tries : mapping of str to sequence, default={}
        Setting to values; all combinations are tried. Default: some settings of `modern`.
    folds : int, default=2
        Number of hold-out problems per combination, at least 2, to see how much results vary.
    method : str, default="simgcd"
        Name of a method.
    recipe : {"modern", "release", "paper"}, optional
        Recipe of `simgcd`. Default: modern, or release on a DINO v1 backbone.
    effort : {"quick", "standard", "thorough"}, optional
        Effort of each run. Default: thorough, with the epochs of `training`.
    settings : mapping, default={}
        Settings that are the same in all runs.
    views : int, optional
        Number of random views per image. Default: that of the effort; 8 for methods that need training.
    training : TrainingConfig, optional
        Configuration of each run. Its seed also decides which classes are held out. Default: 20 epochs.
    backbone : BackboneConfig, optional
        Configuration of the backbone; its views are not used.
    """

    tries: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    folds: int = setting(2, at_least=2, at_most=100)
    method: str = "simgcd"
    recipe: str | None = None
    effort: EffortName | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    views: int | None = setting(None, at_least=0, at_most=MOST_VIEWS)
    training: TrainingConfig = field(default_factory=lambda: TrainingConfig(epochs=EPOCHS))
    backbone: BackboneConfig = field(default_factory=BackboneConfig)

    @property
    def amount(self) -> Amount:
        """Effort, epochs and views of each run."""
        epochs = self.training.epochs if self.effort in (None, "thorough") else None
        return Amount(effort=self.effort, epochs=epochs, views=self.views)

    def __post_init__(self) -> None:
        check_settings(self)
        if both := sorted(self.tries.keys() & self.settings.keys()):
            raise ConfigError(
                f"{both[0]} is both tried and fixed.",
                fix="Remove it from one of the two.",
                code="conflict",
                setting=both[0],
            )


def read_tries(texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Settings to try, written as name=value,value,...

    Parameters
    ----------
    texts : sequence of str
        One text per setting.

    Returns
    -------
    dict of str to tuple of str

    Raises
    ------
    ConfigError
        With code `not-name-values` or `repeated-setting`.

    Examples
    --------
    >>> read_tries(["block-rate=0,0.01"])
    {'block_rate': ('0', '0.01')}
    """
    tries: dict[str, tuple[str, ...]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        name, split = name.strip().replace("-", "_"), tuple(value.strip() for value in values.split(","))
        if not equals or not name or not all(split):
            raise ConfigError(
                f"Settings to try are written as name=value,value,..., got '{text}'.",
                code="not-name-values",
                text=text,
            )
        if name in tries:
            raise ConfigError(
                f"{name} is given twice.",
                fix=f"Put all its values into one list: {name}={','.join([*tries[name], *split])}.",
                code="repeated-setting",
                setting=name,
            )
        tries[name] = split
    return tries
