"""Running a study and building its table."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from newkind.experiments.paper.describe_protocol import describe_protocol
from newkind.experiments.paper.estimates import estimate_for
from newkind.experiments.paper.plan_study import StudyPlan
from newkind.experiments.paper.published import PUBLISHED_UNDER, estimate_of
from newkind.experiments.paper.results import Finished, data_rows
from newkind.experiments.paper.table import Column, Table, write_table
from newkind.experiments.scheduler import Watch
from newkind.schema import InvalidJson, check_json, read_json_file

__all__ = ["build_table", "run_study"]

logger = logging.getLogger(__name__)
OPTIONAL = ("published", "published_time", "statistics")
"""Columns that are only shown where something was published."""


def run_study(plan: StudyPlan, *, watch: Watch | None = None) -> list[Path]:
    """Run what is not finished, and write the table after every run.

    Runs that fail are in `plan.schedule.failures`, and a note of the table names them.

    Parameters
    ----------
    plan : StudyPlan
        The study.
    watch : Watch, optional
        Shows the epochs of each run.

    Returns
    -------
    list of Path
        Files of the table.
    """
    schedule = plan.schedule
    if schedule.cells:
        logger.info(f"{plan.study.title}: {schedule.summary()}")
    _warn_if_replaced(plan)
    schedule.run(watch=watch, after_cell=lambda: _write(plan))
    _measure(plan)
    return _write(plan)


def _write(plan: StudyPlan) -> list[Path]:
    """Write the table of what is finished so far."""
    return write_table(build_table(plan), plan.out)


def _measure(plan: StudyPlan) -> None:
    """Measure on finished cells what a study shows beside scores; each cell keeps its measurement."""
    measure, results = plan.study.measure, plan.schedule.results()
    datas = {cell.name: line.data for line in plan.lines for cell in line.cells}
    if measure is None or not results:
        return
    logger.info(f"Measuring on {len(results)} finished run{'' if len(results) == 1 else 's'}.")
    for name, result in results.items():
        measure(datas[name], plan.schedule.cells[name], result)


def _warn_if_replaced(plan: StudyPlan) -> None:
    """Log that a table of other data or another protocol is overwritten; its runs are kept."""
    path = plan.out / f"{plan.study.name}.json"
    try:
        before = read_json_file(path, dict[str, Any])["protocol"]
        check_json(before, dict[str, Any])
    except (OSError, InvalidJson, KeyError):
        return
    now = build_table(plan).about
    if any(before.get(name) != text for name, text in now.items() if name != "published"):
        logger.warning(
            f"{path.with_suffix('')}.* belong to other data or another protocol and are overwritten. Their runs are kept."
        )


def build_table(plan: StudyPlan) -> Table:
    """Table of what is finished so far; a note says what is missing.

    Parameters
    ----------
    plan : StudyPlan
        The study.

    Returns
    -------
    Table
    """
    study, finished = plan.study, plan.finished()
    rows = [row for found in finished for row in study.tabulate(found)] if plan.lines else data_rows(plan.datas)
    about = describe_protocol(plan.protocol, plan.datas, k_rule=study.k_rule, seeds=plan.seeds)
    if not plan.lines:
        about = {"data": about["data"]}
    if any(row.get("published") for row in rows):
        about["published"] = f"All / Old / New, {PUBLISHED_UNDER}"
    empty = {key for key in OPTIONAL if not any(row.get(key) for row in rows)}
    columns = tuple(column for column in study.columns if column.key not in empty)
    if len(plan.datas) > 1 and plan.lines:
        columns = (Column("data", "Data"), *columns)
    notes = (*study.notes, *_notes(plan, finished))
    return Table(study=study.name, title=study.title, about=about, columns=columns, rows=rows, notes=notes)


def _notes(plan: StudyPlan, finished: Sequence[Finished]) -> list[str]:
    """Notes about the data, estimates, failures and missing runs."""
    n_cells = len(plan.schedule.cells) + plan.n_open
    n_finished = len({result.name for found in finished for result in found.results})
    notes = [note for data in plan.datas for note in data.collection.notes]
    for data in plan.datas if plan.study.needs_estimate else ():
        kept = estimate_for(data, plan.protocol.backbone, plan.out, compute=False)
        published = estimate_of(data.benchmark)
        search = "" if published is None else f" (published estimate: {published})"
        if kept is not None:
            notes.append(f"{data.title}{search}: {kept.sentence()} The true number is {data.n_classes}.")
    notes += [f"A run failed and is not in the table: {error}" for error in plan.schedule.failures.values()]
    if n_finished < n_cells:
        notes.append(f"Incomplete: {n_finished} of {n_cells} runs are finished.")
    return notes
