"""What a study is: its rows, the columns of its table, and how it is drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from newkind.experiments.cells import Cell, CellResult
from newkind.experiments.paper.dataset import BenchData
from newkind.experiments.paper.protocol import Protocol
from newkind.experiments.paper.results import Finished, score_rows
from newkind.experiments.paper.rows import Row
from newkind.experiments.paper.table import Column

__all__ = ["Study", "columns"]

Measure = Callable[[BenchData, Cell, CellResult], None]


@dataclass(frozen=True, kw_only=True)
class Ask:
    """What the rows of a study depend on; `estimate` is the estimated number of categories, None while it is not known."""

    data: BenchData
    protocol: Protocol
    methods: tuple[str, ...]
    estimate: int | None = None


@dataclass(frozen=True, kw_only=True)
class Study:
    """A table and its figures.

    Parameters
    ----------
    name : str
        Name on the command line, and of the files.
    title : str
        Title of the table.
    rows : callable
        Rows on one data, from an `Ask`.
    columns : tuple of Column
        Columns of the table.
    k_rule : str, optional
        How the number of categories is chosen. Default: the true number.
    methods : tuple of str, default=()
        Methods that are compared unless others are given; empty if the study does not compare methods.
    takes_epsilons : bool, default=False
        Whether other weights of the entropy term can be given.
    needs_estimate : bool, default=False
        Whether a row uses the estimated number of categories.
    one_seed : bool, default=False
        Whether only the first seed is used.
    tabulate : callable, optional
        Table rows of a finished line. Default: one row with all scores.
    measure : callable, optional
        Measures something on each finished cell beside its scores.
    notes : tuple of str, default=()
        Sentences below the table.
    """

    name: str
    title: str
    rows: Callable[[Ask], list[Row]]
    columns: tuple[Column, ...]
    k_rule: str = "known (the true number)"
    methods: tuple[str, ...] = ()
    takes_epsilons: bool = False
    needs_estimate: bool = False
    one_seed: bool = False
    tabulate: Callable[[Finished], list[dict[str, Any]]] = score_rows
    measure: Measure | None = None
    notes: tuple[str, ...] = ()


def columns(kind: str = "text", /, **titles: str) -> tuple[Column, ...]:
    """Columns of one kind.

    Parameters
    ----------
    kind : str, default="text"
        Kind of the columns, as in `Column`.
    **titles : str
        Key to title.

    Returns
    -------
    tuple of Column
    """
    return tuple(Column(key, title, kind) for key, title in titles.items())
