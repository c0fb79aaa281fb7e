"""A study from its plan to its tables: cells that are finished are read, the others are run, and nothing is lost on the way."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean

from newkind.errors import ConfigError, RunError
from newkind.evaluation import Accuracy
from newkind.experiments.cells import Cell, CellResult, make_cell, read_result, run_cell
from newkind.experiments.paper.catalogue import ARTEFACTS, Artefact
from newkind.experiments.paper.dataset import BenchData
from newkind.experiments.paper.estimates import kept_estimate, make_estimate
from newkind.experiments.paper.protocol import Protocol
from newkind.experiments.paper.published import PUBLISHED_UNDER, estimate_of
from newkind.experiments.paper.results import Finished, Line, data_rows
from newkind.experiments.paper.studies import STUDIES, Ask, Study
from newkind.experiments.paper.table import Column, Table, write_table
from newkind.progress import duration, percent
from newkind.training.trainer import EpochReport

__all__ = ["Plan", "Watch", "build_table", "find_study", "plan_study", "run_study"]

logger = logging.getLogger(__name__)
OPTIONAL = ("published", "published_time", "statistics")
"""Columns that are only shown where something was published."""
OnEpoch = Callable[[EpochReport, Accuracy | None], None]
Watch = Callable[[str, int], AbstractContextManager[OnEpoch | None]]
"""(what is run, its epochs) -> what to tell after every epoch, as long as it runs."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """All cells of a study on some data."""

    study: Study
    protocol: Protocol
    datas: tuple[BenchData, ...]
    out: Path
    lines: tuple[Line, ...]
    failures: dict[str, str] = field(default_factory=dict)
    """Cells that ended with an error, and its sentence."""

    @property
    def runs(self) -> Path:
        return self.out / "runs"

    def cells(self) -> dict[str, tuple[Cell, str]]:
        """Each cell once, with what it is; seed by seed, so that a study that is ended has something of every row."""
        several = len(self.datas) > 1
        longest = max((len(line.cells) for line in self.lines), default=0)
        found: dict[str, tuple[Cell, str]] = {}
        for seed in range(longest):
            for line in self.lines:
                if seed < len(line.cells):
                    cell = line.cells[seed]
                    found.setdefault(cell.name, (cell, f"{line.words(with_data=several)}, seed {cell.seed}"))
        return found

    def results(self) -> dict[str, CellResult]:
        """The finished cells, by their names."""
        read = {name: read_result(cell, self.runs) for name, (cell, _) in self.cells().items()}
        return {name: result for name, result in read.items() if result is not None}

    def finished(self) -> list[Finished]:
        """Every line with what is finished of it."""
        results = self.results()
        return [
            Finished(line, [results[cell.name] for cell in line.cells if cell.name in results]) for line in self.lines
        ]

    @property
    def n_open(self) -> int:
        """Cells whose number of categories is to be estimated first."""
        seeds = 1 if self.study.one_seed else self.protocol.n_seeds
        return sum(seeds for line in self.lines if line.row.is_open)


def find_study(name: str) -> tuple[Study, Artefact | None]:
    """A study by its name, or by that of a table or figure of the paper, which comes with it."""
    if name in STUDIES:
        return STUDIES[name], None
    if name in ARTEFACTS:
        return STUDIES[ARTEFACTS[name].study], ARTEFACTS[name]
    raise ConfigError(
        f"There is no study '{name}'.",
        fix=f"Studies are {', '.join(STUDIES)}; newkind bench list shows what each one makes.",
    )


def plan_study(
    study: Study, datas: Sequence[BenchData], protocol: Protocol, out: Path, *, estimate: bool = True
) -> Plan:
    """estimate: whether to find out a number of categories that is not known yet; otherwise its cells stay open."""
    if protocol.methods and not study.methods:
        raise ConfigError(f"The study '{study.name}' does not compare methods.", fix="Leave out --methods.")
    if protocol.epsilons and not study.takes_epsilons:
        raise ConfigError(f"The study '{study.name}' does not vary epsilon.", fix="Leave out --epsilons.")
    lines = []
    datas = _told_apart(datas)
    for data in datas:
        k = None
        if study.needs_estimate:
            found = kept_estimate(data, protocol.backbone, out)
            if found is None and estimate:
                found = make_estimate(data, protocol.backbone, out)
            k = None if found is None else found.n_categories
        methods = protocol.methods or study.methods
        for row in study.rows(Ask(data=data, protocol=protocol, methods=methods, estimate=k)):
            seeds = protocol.seeds[:1] if study.one_seed else protocol.seeds
            cells = tuple(
                make_cell(
                    data,
                    protocol,
                    method=row.method,
                    seed=seed,
                    settings=row.settings,
                    recipe=row.recipe,
                    n_categories=row.n_categories,
                )
                for seed in ([] if row.is_open else seeds)
            )
            lines.append(Line(data=data, row=row, cells=cells))
    return Plan(study=study, protocol=protocol, datas=tuple(datas), out=out, lines=tuple(lines))


def _told_apart(datas: Sequence[BenchData]) -> list[BenchData]:
    """Each content once, each under a title of its own."""
    unique = list({data.digest: data for data in datas}.values())
    titles = [data.title for data in unique]
    return [
        replace(data, title=f"{data.title} ({titles[:i].count(data.title) + 1})")
        if titles.count(data.title) > 1
        else data
        for i, data in enumerate(unique)
    ]


@contextmanager
def _nobody_watches(_: str, __: int) -> Iterator[None]:
    yield None


def run_study(plan: Plan, *, detail: Say, watch: Watch = _nobody_watches) -> list[Path]:
    """Runs what is not finished and writes the tables, anew after every cell. The paths of the tables.

    say: a line for each thing that is done. detail: what `discover` says of the first cell that is run.
    """
    try:
        plan.runs.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{plan.runs} cannot be made ({error.strerror}).", fix="Take another --out.") from None
    _tell_replaced(plan)
    cells = plan.cells()
    seconds = [(result.content["method"], result.seconds) for result in plan.results().values()]
    todo = [name for name, (cell, _) in cells.items() if read_result(cell, plan.runs) is None]
    if cells:
        logger.info(_start(plan, len(cells), [cells[name][0] for name in todo], seconds))
    for i, name in enumerate(todo):
        cell, words = cells[name]
        try:
            with watch(words, cell.config.training.epochs) as on_epoch:
                result = run_cell(cell, plan.runs, on_epoch=on_epoch)
        except RunError as error:  # the others go on
            plan.failures[name] = str(error)
            logger.info(f"[{i + 1}/{len(todo)}] {words}: failed. {error}")
            continue
        seconds.append((cell.method, result.seconds))
        left = _left([cells[other][0] for other in todo[i + 1 :]], seconds)
        logger.info(f"[{i + 1}/{len(todo)}] {words}: {_scores(result)} ({duration(result.seconds)}{left})")
        write_table(build_table(plan), plan.out)
    _measure(plan, cells)
    return write_table(build_table(plan), plan.out)


def _measure(plan: Plan, cells: dict[str, tuple[Cell, str]]) -> None:
    """What a study wants to know of finished cells beside their scores; each keeps what was measured on it."""
    measure, results = plan.study.measure, plan.results()
    if measure is None or not results:
        return
    logger.info(f"Measuring on {'the finished run' if len(results) == 1 else f'{len(results)} finished runs'} ...")
    for name, result in results.items():
        measure(cells[name][0], result)


def _start(plan: Plan, n_cells: int, todo: list[Cell], seconds: list[tuple[str, float]]) -> str:
    """What is there, what is to do, and how long that takes as far as it is known."""
    if not todo:
        return f"{plan.study.title}: {'the run is' if n_cells == 1 else f'all {n_cells} runs are'} finished."
    time = _left(todo, seconds).removeprefix("; ").removesuffix(" left") or "how long is known after the first one"
    runs = "1 run" if n_cells == 1 else f"{n_cells} runs"
    return f"{plan.study.title}: {runs}, {n_cells - len(todo)} of them finished, {len(todo)} to do ({time})."


def _left(todo: list[Cell], seconds: list[tuple[str, float]]) -> str:
    """From the times of the finished runs: those of the same method, or of all."""
    if not todo or not seconds:
        return ""
    everyone = fmean(time for _, time in seconds)
    total = 0.0
    for cell in todo:
        same = [time for method, time in seconds if method == cell.method]
        total += fmean(same) if same else everyone
    return f"; about {duration(total)} left"


def _scores(result: CellResult) -> str:
    values = {name: result.score(name.lower()) for name in ("All", "Old", "New")}
    return "  ".join(f"{name} {'-' if value is None else percent(value).strip()}" for name, value in values.items())


def _tell_replaced(plan: Plan) -> None:
    """A table of other data or another protocol is written over; its runs stay."""
    path = plan.out / f"{plan.study.name}.json"
    try:
        before = json.loads(path.read_text(encoding="utf-8"))["protocol"]
    except (OSError, ValueError, KeyError, TypeError):
        return
    now = build_table(plan).about
    if any(before.get(name) != text for name, text in now.items() if name != "published"):
        logger.info(
            f"{path.with_suffix('')}.* were of other data or another protocol and are replaced; their runs are kept."
        )


def build_table(plan: Plan) -> Table:
    """Of what is finished so far; a note says what is missing."""
    study, finished = plan.study, plan.finished()
    table_rows = [row for found in finished for row in study.tabulate(found)]
    if not plan.lines:
        table_rows = data_rows(plan.datas)
    seeds = plan.protocol.seeds[:1] if study.one_seed else plan.protocol.seeds
    about = plan.protocol.about(plan.datas, k_rule=study.k_rule, seeds=seeds)
    if not plan.lines:
        about = {"data": about["data"]}
    if any(row.get("published") for row in table_rows):
        about["published"] = f"All / Old / New, {PUBLISHED_UNDER}"
    empty = {key for key in OPTIONAL if not any(row.get(key) for row in table_rows)}
    columns = tuple(column for column in study.columns if column.key not in empty)
    if len(plan.datas) > 1 and plan.lines:
        columns = (Column("data", "Data"), *columns)
    return Table(
        study=study.name,
        title=study.title,
        about=about,
        columns=columns,
        rows=table_rows,
        notes=(*study.notes, *_notes(plan, finished)),
    )


def _notes(plan: Plan, finished: Sequence[Finished]) -> list[str]:
    asked = len(plan.cells()) + plan.n_open
    there = len({result.name for found in finished for result in found.results})
    notes = [note for data in plan.datas for note in data.collection.notes]
    for data in plan.datas if plan.study.needs_estimate else ():
        kept, published = kept_estimate(data, plan.protocol.backbone, plan.out), estimate_of(data.benchmark)
        search = "" if published is None else f" (the published search: {published})"
        if kept is not None:
            notes.append(f"{data.title}, estimated{search}: {kept.sentence()} The truth has {data.n_classes}.")
    notes += [f"A run failed and is not in the table: {sentence}" for sentence in plan.failures.values()]
    if there < asked:
        notes.append(f"Not complete: {there} of {asked} runs are finished.")
    return notes


def _nothing(_: str) -> None:
    pass
