"""Corrections from another program as decisions: what a person confirmed, moved or named there."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from newkind.data.names import printable
from newkind.data.wording import count
from newkind.errors import ConfigError, DataError
from newkind.export.corrected_items import Correction
from newkind.export.ecotaxa import file_text, plain_text
from newkind.export.label_studio import JUNK_CHOICE
from newkind.export.read_ecotaxa import read_ecotaxa
from newkind.export.read_label_studio import read_label_studio
from newkind.runs.answer import APPROVED, JUNK, LABELLED, Answer
from newkind.runs.decision import Decision, Event
from newkind.runs.decisions import Decisions
from newkind.runs.run import Run
from newkind.runs.write_answer import write_answer

__all__ = ["READERS", "CorrectionPlan", "log_left_out", "plan_corrections", "record_corrections"]

logger = logging.getLogger(__name__)

READERS: dict[str, Callable[[Path], list[Correction]]] = {
    "labelstudio": read_label_studio,
    "ecotaxa": read_ecotaxa,
}
"""Formats by name."""
N_LOGGED = 5


@dataclass(frozen=True)
class CorrectionPlan:
    """Decisions that corrections lead to.

    Parameters
    ----------
    decisions : list of Decision
        In the order in which they are recorded.
    n_unchanged : int
        Number of images whose category a person had confirmed before, or had confirmed when the file was exported, whatever was
        decided since.
    unknown : list of str
        Items of the file that are not in the run.
    contradicting : list of str
        Images that two people gave different categories.
    """

    decisions: list[Decision]
    n_unchanged: int
    unknown: list[str]
    contradicting: list[str]


def plan_corrections(run: Run, path: Path, *, format: str) -> CorrectionPlan:
    """Compare a file of corrections with the current answer of a run.

    An image that the file confirms in its category is approved. One that it puts elsewhere is moved. A name that is new
    renames a category if all images of that category have it and no others, and opens a new category otherwise. `junk`
    marks images as junk. Images about which nobody decided are left alone, and so are those that a person had put there before the
    export: the file only repeats it.

    Parameters
    ----------
    run : Run
        A finished run.
    path : Path
        The file.
    format : {"labelstudio", "ecotaxa"}
        Its format.

    Returns
    -------
    CorrectionPlan

    Raises
    ------
    ConfigError
        With the code `unknown-format`.
    DataError
        If the file cannot be read, or has no image of the run (`no-known-images`).
    RunError
        With the code `invalid-name` for a name that a category cannot have.
    """
    if format not in READERS:
        raise ConfigError(
            f"There is no format {format}.", fix=f"Formats: {', '.join(READERS)}.", code="unknown-format", format=format
        )
    found, decisions = READERS[format](path), Decisions(run)
    answer = decisions.answer
    own = {file_text(file): file for file in answer.files} | {file: file for file in answer.files}
    known = [replace(correction, file=own[correction.file]) for correction in found if correction.file in own]
    unknown = [correction.file for correction in found if correction.file not in own]
    if found and not known:
        raise DataError(
            f"None of the {count(len(found), 'item')} of {path} is an image of {run.folder}, such as {printable(unknown[0])}.",
            fix="Use the file that was made from an export of this run.",
            code="no-known-images",
            path=str(path),
        )
    names = {correction.file: correction.category for correction in known}
    contradicting = sorted({c.file for c in known if c.category != names[c.file]})
    names = {file: name for file, name in names.items() if file not in contradicting}
    exported = _answers_at_export(decisions, known)
    same = {c.file for c in known if c.event in exported and _was_reviewed(exported[c.event], c)}.intersection(names)
    names = {file: name for file, name in names.items() if file not in same}
    plan = _plan(answer, names, _ids_at_export(answer, exported), unknown, contradicting)
    return replace(plan, n_unchanged=plan.n_unchanged + len(same))


def _answers_at_export(decisions: Decisions, known: Sequence[Correction]) -> dict[int, Answer]:
    """Answers after the last events before the export, by the number of the event, if there were decisions since."""
    last = decisions.answer.last
    return {event: decisions.at(event) for event in sorted({c.event for c in known}) if 0 <= event < last}


def _was_reviewed(answer: Answer, correction: Correction) -> bool:
    """Whether a person had put an image where the correction puts it at the time of the export, so that it says nothing new."""
    row = answer.row[correction.file]
    if answer.status[row] == JUNK:
        return correction.category == JUNK_CHOICE
    k = int(answer.category[row])
    # EcoTaxa shows a category with its parent: `Copepoda<Maxillopoda`.
    written = {correction.category, correction.category.partition("<")[0]}
    return answer.status[row] in (APPROVED, LABELLED) and plain_text(answer.categories[k].name) in map(
        plain_text, written
    )


def _ids_at_export(answer: Answer, exported: dict[int, Answer]) -> dict[str, str]:
    """Names of categories at the time of the export to their ids: a category may have been renamed since."""
    found: dict[str, str] = {}
    for before in exported.values():
        found |= {state.name: state.id for state in before.categories}
    found |= {state.id: state.id for state in answer.categories} | {s.name: s.id for s in answer.categories}
    return {plain_text(name): id for name, id in found.items()} | found


def _plan(
    answer: Answer, names: dict[str, str], ids: dict[str, str], unknown: list[str], contradicting: list[str]
) -> CorrectionPlan:
    groups: dict[str, list[str]] = {}
    for file, name in names.items():
        groups.setdefault(name, []).append(file)
    decisions: list[Decision] = []
    n_unchanged = 0
    for name, files in groups.items():
        # EcoTaxa shows a category with its parent: `Copepoda<Maxillopoda`.
        place = answer.position.get(ids.get(name) or ids.get(name.partition("<")[0]) or name)
        if place is None and name == JUNK_CHOICE:
            rest = [file for file in files if answer.status[answer.row[file]] != JUNK]
            decisions += [Decision("junk", files=tuple(rest))] if rest else []
        elif place is None:
            rest = files
            decisions += _new_name(answer, name, files)
        else:
            state = answer.categories[place]
            own = [file for file in files if answer.category[answer.row[file]] == place]
            rest = [file for file in own if answer.status[answer.row[file]] not in (APPROVED, LABELLED)]
            moved = [file for file in files if answer.category[answer.row[file]] != place]
            decisions += [Decision("approve", category=state.id, files=tuple(rest))] if rest else []
            decisions += [Decision("move", files=tuple(moved), into=state.id)] if moved else []
            rest = rest + moved
        n_unchanged += len(files) - len(rest)
    return CorrectionPlan(decisions, n_unchanged, unknown, contradicting)


def _new_name(answer: Answer, name: str, files: list[str]) -> list[Decision]:
    """A name that no category has: of a whole category, or of a new one."""
    places = {int(answer.category[answer.row[file]]) for file in files}
    if len(places) == 1 and (place := places.pop()) >= 0:
        state = answer.categories[place]
        if not state.given and len(files) == len(answer.members(state.id)):
            rename = Decision("rename", category=state.id, name=name)
            return [rename, Decision("approve", category=state.id, files=tuple(files))]
    return [Decision("move", files=tuple(files), name=name)]


def record_corrections(run: Run, plan: CorrectionPlan, *, author: str | None = None) -> list[Event]:
    """Record the decisions of a plan, and write assignments.csv and categories.json as they are with them.

    If it is interrupted, the decisions so far are kept, and a new plan of the same file has the others. The two files are written even if
    none are left, because they may lack the last ones.
    """
    decisions = Decisions(run)
    events = [decisions.decide(decision, author=author) for decision in plan.decisions]
    write_answer(run)
    return events


def log_left_out(plan: CorrectionPlan) -> None:
    """Log what of a file is not in the plan."""
    for files, why in ((plan.unknown, "not an image of this run"), (plan.contradicting, "has contradicting answers")):
        for file in files[:N_LOGGED]:
            logger.warning(f"Left out {printable(file)}: {why}.")
        if len(files) > N_LOGGED:
            logger.warning(f"Left out {len(files) - N_LOGGED:,} more: {why}.")
