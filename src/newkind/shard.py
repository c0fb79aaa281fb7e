"""Which part of the work one of several workers does."""

from __future__ import annotations

from dataclasses import dataclass

from newkind.errors import ConfigError

__all__ = ["Shard"]


@dataclass(frozen=True)
class Shard:
    """Worker `number` of `count`, counted from 0.

    Parameters
    ----------
    number : int, default=0
        Number of the worker.
    count : int, default=1
        Number of workers.

    Raises
    ------
    ConfigError
        With the code `shard-range` unless 0 <= `number` < `count`.

    Examples
    --------
    >>> Shard.parse("2/8")
    Shard(number=2, count=8)
    >>> Shard(1, 2).divided(rank=0, n_processes=4)
    Shard(number=4, count=8)
    """

    number: int = 0
    count: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.number < self.count:
            raise ConfigError(
                f"`shard` is {self.number}/{self.count}; shards of {self.count} are counted from 0 to {self.count - 1}.",
                code="shard-range",
                setting="shard",
            )

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read a shard from text.

        Parameters
        ----------
        text : str
            As `2/8`: number and count.

        Returns
        -------
        Shard

        Raises
        ------
        ConfigError
            With the code `shard-format` or `shard-range`.
        """
        number, slash, count = text.partition("/")
        if not (slash and number.isdecimal() and count.isdecimal() and len(text) < 40):
            raise ConfigError(
                f"`shard` is '{text}'; expected its number and the number of shards, such as 0/8.",
                code="shard-format",
                setting="shard",
            )
        return cls(int(number), int(count))

    def divided(self, *, rank: int, n_processes: int) -> Shard:
        """Return the share of one of several processes in this shard.

        Parameters
        ----------
        rank : int
            Number of the process, from 0.
        n_processes : int
            Number of processes.

        Returns
        -------
        Shard
        """
        return Shard(self.number * n_processes + rank, self.count * n_processes)
