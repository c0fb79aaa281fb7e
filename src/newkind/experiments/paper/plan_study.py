"""Plan of a study: its rows on every data, and the cells behind them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from newkind.atomic import check_folder
from newkind.backbone.precision import choose_precision
from newkind.config import BackboneConfig, TrainingConfig
from newkind.effort import Amount
from newkind.errors import ConfigError
from newkind.experiments.cells import Cell, make_cell
from newkind.experiments.paper.catalogue import ARTEFACTS, Artefact
from newkind.experiments.paper.dataset import BenchData
from newkind.experiments.paper.estimates import estimate_for
from newkind.experiments.paper.protocol import Protocol
from newkind.experiments.paper.results import Finished, Line
from newkind.experiments.paper.rows import Row
from newkind.experiments.paper.studies import STUDIES
from newkind.experiments.paper.study import Ask, Study
from newkind.experiments.scheduler import Schedule
from newkind.methods.method import Method
from newkind.methods.registry import find_method
from newkind.optimizer_config import OptimizerConfig
from newkind.pipeline.configure import configure

__all__ = ["StudyPlan", "find_study", "plan_study"]

EVALUATIONS = 20
"""Evaluations during training, for the study of epochs; never for a choice."""
EVALUATIONS_SETTLING = 4
"""Evaluations of a method that clusters all features for each of them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class StudyPlan:
    """All runs of a study. Made by `plan_study`.

    Parameters
    ----------
    study : Study
        The study.
    protocol : Protocol
        What is the same for all runs.
    datas : tuple of BenchData
        The data, each content once.
    out : Path
        Folder for runs, tables and figures.
    lines : tuple of Line
        Rows on every data, with their cells.
    schedule : Schedule
        The cells, seed by seed, so that an interrupted study has something of every row.
    """

    study: Study
    protocol: Protocol
    datas: tuple[BenchData, ...]
    out: Path
    lines: tuple[Line, ...]
    schedule: Schedule

    def finished(self) -> list[Finished]:
        """Every line with the results that it has so far."""
        results = self.schedule.results()
        return [
            Finished(line, [results[cell.name] for cell in line.cells if cell.name in results]) for line in self.lines
        ]

    @property
    def seeds(self) -> range:
        """Seeds of every row."""
        return self.protocol.seed_values(only_first=self.study.one_seed)

    @property
    def n_open(self) -> int:
        """Number of cells whose number of categories has to be estimated first."""
        return sum(len(self.seeds) for line in self.lines if line.row.is_open)


def find_study(name: str) -> tuple[Study, Artefact | None]:
    """Study by its name, or by the name of a table or figure of the paper.

    Parameters
    ----------
    name : str
        Name of a study, or of an artefact such as `tab-ssb`.

    Returns
    -------
    study : Study
        The study.
    artefact : Artefact or None
        The table or figure, if it was named.

    Raises
    ------
    ConfigError
        With code `unknown-study`.
    """
    if name in STUDIES:
        return STUDIES[name], None
    if name in ARTEFACTS:
        return STUDIES[ARTEFACTS[name].study], ARTEFACTS[name]
    raise ConfigError(
        f"There is no study '{name}'.",
        fix=f"Studies: {', '.join(STUDIES)}. newkind bench list shows the tables and figures of the paper.",
        code="unknown-study",
        study=name,
    )


def plan_study(
    study: Study, datas: Sequence[BenchData], protocol: Protocol, out: Path, *, estimate: bool = True
) -> StudyPlan:
    """Rows and cells of a study.

    Parameters
    ----------
    study : Study
        The study.
    datas : sequence of BenchData
        The data.
    protocol : Protocol
        What is the same for all runs.
    out : Path
        Folder for runs, tables and figures.
    estimate : bool, default=True
        Whether to estimate a number of categories that is not known yet. Otherwise its cells stay open.

    Returns
    -------
    StudyPlan

    Raises
    ------
    ConfigError
        With code `not-applicable` for methods or epsilons in a study that has none.
    """
    for name, given, applicable in (
        ("methods", protocol.methods, study.methods),
        ("epsilons", protocol.epsilons, study.takes_epsilons),
    ):
        if given and not applicable:
            raise ConfigError(
                f"The study '{study.name}' does not compare {name}.",
                fix=f"Leave out `{name}`.",
                code="not-applicable",
                setting=name,
            )
    if estimate:
        check_folder(out)
    datas = _distinct(datas)
    methods, lines = protocol.methods or study.methods, []
    for data in datas:
        found = estimate_for(data, protocol.backbone, out, compute=estimate) if study.needs_estimate else None
        k = None if found is None else found.n_categories
        for row in study.rows(Ask(data=data, protocol=protocol, methods=methods, estimate=k)):
            seeds = protocol.seed_values(only_first=study.one_seed)
            prefix = f"{data.title}, " if len(datas) > 1 else ""
            cells = (study_cell(data, protocol, row, seed, prefix=prefix) for seed in ([] if row.is_open else seeds))
            lines.append(Line(data=data, row=row, cells=tuple(cells)))
    by_seed = [cell for cells in zip_longest(*(line.cells for line in lines)) for cell in cells if cell is not None]
    schedule = Schedule(by_seed, out / "runs")
    return StudyPlan(study=study, protocol=protocol, datas=tuple(datas), out=out, lines=tuple(lines), schedule=schedule)


def study_cell(data: BenchData, protocol: Protocol, row: Row, seed: int, *, prefix: str = "") -> Cell:
    """One run of a row; `prefix` precedes the title of the row in messages."""
    settles = find_method(row.method).method.settle is not Method.settle
    baseline = not find_method(row.method).method.trains
    config = configure(
        data.collection,
        method=row.method,
        recipe=protocol.recipe if row.method == "simgcd" else None,
        # The clusters of k-means are those of single views, as published.
        amount=Amount(effort="quick") if baseline else Amount(epochs=protocol.epochs, views=protocol.backbone.views),
        n_categories=row.n_categories,
        settings=row.settings,
        training=TrainingConfig(
            **_optimizer(protocol, row),
            evaluate_every=max(protocol.epochs // (EVALUATIONS_SETTLING if settles else EVALUATIONS), 1),
            seed=seed,
        ),
        backbone=_one_backbone(protocol.backbone),
        online=protocol.online,
    )
    return make_cell(
        data.collection,
        config,
        title=f"{prefix}{row.title()}, seed {seed}",
        prefix=data.benchmark or data.title,
        digest=data.digest,
    )


def _one_backbone(asked: BackboneConfig) -> BackboneConfig:
    """The same tokens for all methods: in fp32, and not merged, unless that was asked for."""
    return replace(choose_precision(asked, as_published=True), patch_tokens=asked.patch_tokens or 0)


def _optimizer(protocol: Protocol, row: Row) -> dict[str, Any]:
    """Settings of the optimizer that are not those of the method. Which parameters are decayed is always as in the method."""
    equal = asdict(OptimizerConfig()) if row.equal or protocol.equal else {}
    given = {} if protocol.batch_size is None else {"batch_size": protocol.batch_size}
    return {name: value for name, value in (equal | given).items() if name != "decay_vectors"}


def _distinct(datas: Sequence[BenchData]) -> list[BenchData]:
    """Each content once, each with a title of its own."""
    unique = list({data.digest: data for data in datas}.values())
    titles = [data.title for data in unique]
    return [
        replace(data, title=f"{data.title} ({titles[:i].count(data.title) + 1})")
        if titles.count(data.title) > 1
        else data
        for i, data in enumerate(unique)
    ]
