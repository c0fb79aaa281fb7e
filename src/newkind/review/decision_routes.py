"""Requests that change something; all of them are POST."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from newkind.data import printable
from newkind.errors import RunError
from newkind.pipeline.refit import accept_refit, plan_refit
from newkind.review.data_routes import as_json
from newkind.review.growths import GrowthSession
from newkind.review.requests import (
    bad_request,
    based_on,
    decision_of,
    line_numbers,
    not_found,
    read_json,
    workbench_of,
)
from newkind.review.wording import describe_event
from newkind.review.workbench import Workbench
from newkind.runs.decision import Decision, Event

__all__ = ["DECISIONS"]

MOST_MOVES = 50
MOST_FACES = 12
Handler = Callable[[Workbench, dict[str, Any]], dict[str, Any]]


def _recorded(workbench: Workbench, event: Event) -> dict[str, Any]:
    text = describe_event(event, workbench.decisions.log.events(), workbench.snapshot.answer)
    return {"number": event.number, "text": text}


def _decide(workbench: Workbench, content: dict[str, Any]) -> dict[str, Any]:
    decision = decision_of(content.get("decision"), workbench.snapshot)
    return _recorded(workbench, workbench.decide(decision, based_on(content)))


def _undo(workbench: Workbench, content: dict[str, Any]) -> dict[str, Any]:
    """Undo an event; by default the last one. The page may be older than the event."""
    return _recorded(workbench, workbench.decide(Decision("undo", event=_event(content)), workbench.decisions.log.last))


def _redo(workbench: Workbench, content: dict[str, Any]) -> dict[str, Any]:
    return _recorded(workbench, workbench.decide(Decision("redo", event=_event(content)), workbench.decisions.log.last))


def _event(content: dict[str, Any]) -> int:
    number = content.get("event", 0)
    if type(number) is not int or not 0 <= number < 10**9:
        raise bad_request("`event` must be the number of an event.")
    return number


def _grow(workbench: Workbench, content: dict[str, Any]) -> dict[str, Any]:
    """Start growing a category, or answer the page that is shown. Answers are recorded page by page."""
    key, snapshot = content.get("growth"), workbench.snapshot
    if not isinstance(key, str) or not 8 <= len(key) <= 64:
        raise bad_request("`growth` must be a text of 8 to 64 characters.")
    if "page" not in content:
        k = snapshot.position(str(content.get("category")))
        if k is None:
            raise not_found("There is no such category. It may have been merged or undone.")
        return _growth_page(workbench.growths.start(key, snapshot, k))
    session = workbench.growths.get(key)
    if session is None or session.page != content["page"]:
        raise not_found("This growth is not in progress any more. Start again; your answers are kept.")
    _refuse_if_stale(workbench, session)
    wrong = set(line_numbers(content.get("wrong"), len(snapshot.answer)))
    shown, files = session.shown, snapshot.answer.files
    right = tuple(files[line] for line in shown if line not in wrong)
    not_in = tuple(files[line] for line in shown if line in wrong)
    session.number += _record_page(workbench, session, right, not_in)
    session.answer(wrong)
    _refuse_if_stale(workbench, session)
    return _growth_page(session)


def _record_page(workbench: Workbench, session: GrowthSession, right: tuple[str, ...], wrong: tuple[str, ...]) -> int:
    """Record the answers about one page; returns the number of decisions."""
    found = [Decision("approve", category=session.category, files=right)] if right else []
    found += [Decision("reject", category=session.category, files=wrong)] if wrong else []
    for decision in found:
        workbench.decide(decision, session.number)
    return len(found)


def _refuse_if_stale(workbench: Workbench, session: GrowthSession) -> None:
    """Raise if there are other decisions than those of the growth: its candidates may be decided by now."""
    if workbench.decisions.log.last != session.number:
        raise RunError(
            "Decisions were made in another window.", fix="Refresh the page. Your answers are kept.", code="stale"
        )


def _growth_page(session: GrowthSession) -> dict[str, Any]:
    """What to look at next, or the bound."""
    growth = session.growth
    bound = growth.bound()
    return {
        "number": session.number,
        "page": session.page,
        "phase": growth.phase,
        "shown": session.shown,
        "first": int(growth.shown[0]) + 1 if len(growth.shown) else 0,
        "last": int(growth.shown[-1]) + 1 if len(growth.shown) else 0,
        "n_candidates": len(session.candidates),
        "cut": growth.cut,
        "looks": growth.n_looks,
        "looks_left": growth.looks_left,
        "unlooked": len(session.unlooked),
        "bound": {"n": bound.n_images, "purity": bound.purity, "confidence": bound.confidence, "looks": bound.n_looks},
    }


def _grown(workbench: Workbench, content: dict[str, Any]) -> dict[str, Any]:
    """Approve the images of a finished growth that nobody looked at."""
    key = content.get("growth")
    session = workbench.growths.get(key) if isinstance(key, str) else None
    if session is None or session.growth.phase != "done":
        raise not_found("This growth is not in progress any more. Start again; your answers are kept.")
    _refuse_if_stale(workbench, session)
    files = tuple(workbench.snapshot.answer.files[line] for line in session.unlooked)
    if not files:
        raise bad_request("There is nothing to approve.")
    decision = Decision("approve", category=session.category, files=files)
    done = _recorded(workbench, workbench.decide(decision, session.number))
    workbench.growths.end(str(key))
    return done


def _refit(workbench: Workbench, content: dict[str, Any]) -> dict[str, Any]:
    """Fit the model to the decisions, and say which images would move; nothing is recorded."""
    key = content.get("refit")
    if not isinstance(key, str) or not 8 <= len(key) <= 64:
        raise bad_request("`refit` must be a text of 8 to 64 characters.")
    workbench.check_writable()
    if (
        not workbench.n_to_learn
    ):  # it would still move images, a little to the worse (benchmarks/results/refit_sizes.md)
        raise bad_request("There are no decisions to learn from since the last fit.")
    plan = plan_refit(workbench.run)
    workbench.refit_plan = (key, plan)
    names = {state.id: printable(state.name) for state in plan.before.categories}
    lines: dict[tuple[str, str], list[int]] = {}
    for moved in plan.moved:
        lines.setdefault((moved.before, moved.after), []).append(plan.before.row[moved.file])
    moves = sorted(lines.items(), key=lambda item: -len(item[1]))[:MOST_MOVES]
    return {
        "number": plan.before.last,
        "n_moved": len(plan.moved),
        "became_known": [names[category] for category in plan.became_known],
        "moves": [
            {
                "from": names.get(a, "no category"),
                "to": names.get(b, "no category"),
                "n": len(rows),
                "lines": rows[:MOST_FACES],
            }
            for (a, b), rows in moves
        ],
    }


def _accept_refit(workbench: Workbench, content: dict[str, Any]) -> dict[str, Any]:
    """Use the refit that was shown; refused if there were decisions since."""
    workbench.check_writable()
    found = workbench.refit_plan
    if found is None or found[0] != content.get("refit"):
        raise not_found("This refit is not available any more. Refit again.")
    workbench.refit_plan = None
    return _recorded(workbench, accept_refit(workbench.run, found[1]))


def _post(path: str, handler: Handler) -> Route:
    async def answer(request: Request) -> Response:
        content = await read_json(request)
        return as_json(await run_in_threadpool(handler, workbench_of(request), content))

    return Route(path, answer, methods=["POST"])


DECISIONS = [
    _post("/api/decide", _decide),
    _post("/api/undo", _undo),
    _post("/api/redo", _redo),
    _post("/api/grow", _grow),
    _post("/api/grown", _grown),
    _post("/api/refit", _refit),
    _post("/api/refit/accept", _accept_refit),
]
