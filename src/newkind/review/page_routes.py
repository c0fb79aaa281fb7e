"""Pages: queue, categories, one category, merge, split, grow, images to check, sheet, search, map and history."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from newkind.review.listing import ORDERS, SHOWN
from newkind.review.pages import render_page
from newkind.review.requests import category_of, not_found, workbench_of
from newkind.review.snapshot import DIFFERENT, Snapshot
from newkind.review.wording import describe_named
from newkind.review.work_queue import KINDS_OF_IMAGES, Task, doubtful_lines, make_queue, make_sheets
from newkind.runs.answer import count_images
from newkind.runs.decision import Event
from newkind.runs.replay import effective

__all__ = ["PAGES"]

MOST_CARDS = 30
MOST_EVENTS = 500
STRIP = 8


def _queue(request: Request) -> Response:
    workbench = workbench_of(request)
    snapshot = workbench.snapshot
    tasks = make_queue(snapshot)
    cards = [(task, _strips(snapshot, task)) for task in tasks[:MOST_CARDS]]
    return render_page(
        workbench,
        "queue.html",
        snapshot=snapshot,
        cards=cards,
        n_tasks=len(tasks),
        kinds=KINDS_OF_IMAGES,
        n_to_learn=workbench.n_to_learn,
    )


def _strips(snapshot: Snapshot, task: Task) -> list[list[int]]:
    """Rows of the images that a card shows: of both categories, typical and least typical ones, or the doubtful ones."""
    if task.kind == "merge":
        return [snapshot.faces(task.k, 6), snapshot.faces(task.other, 6)]
    if task.kind == "approve":
        lines = snapshot.by_typicality(task.k, reverse=True)
        return [snapshot.faces(task.k, STRIP // 2), lines[~snapshot.is_decided[lines]][:STRIP].tolist()]
    lines = make_sheets(snapshot)[0] if task.kind == "sheet" else doubtful_lines(snapshot, task.about)
    return [lines[:STRIP].tolist()]


def _categories(request: Request) -> Response:
    workbench = workbench_of(request)
    snapshot = workbench.snapshot
    return render_page(
        workbench,
        "categories.html",
        snapshot=snapshot,
        strips={k: snapshot.faces(k, 4) for k in snapshot.shown},
        means=count_images(snapshot.answer).mean_confidence,
    )


def _category(request: Request) -> Response:
    workbench = workbench_of(request)
    snapshot = workbench.snapshot
    k = category_of(request, snapshot)
    place = snapshot.shown.index(k) if k in snapshot.shown else -1
    following = snapshot.shown[(place + 1) % len(snapshot.shown)] if snapshot.shown else k
    earlier = snapshot.shown[place - 1] if snapshot.shown else k
    return render_page(
        workbench,
        "category.html",
        snapshot=snapshot,
        k=k,
        neighbours=snapshot.neighbours(k, 9),
        following=following,
        earlier=earlier,
        orders=ORDERS,
        shown=SHOWN,
        columns={name: sorted(set(values)) for name, values in workbench.columns.items()},
        notes=[
            note.text
            for note in snapshot.answer.notes
            if note.category == snapshot.categories[k].id and not note.text.startswith(DIFFERENT)
        ],
        mean=float(count_images(snapshot.answer).mean_confidence[k]),
    )


def _merge(request: Request) -> Response:
    workbench = workbench_of(request)
    snapshot = workbench.snapshot
    a, b = category_of(request, snapshot, "a"), category_of(request, snapshot, "b")
    if a == b:
        raise not_found("These two categories are one already.")
    a, b = sorted((a, b), key=lambda k: not snapshot.categories[k].given)  # a given class is the likely target
    between = snapshot.between.get((min(a, b), max(a, b)), np.zeros(0, dtype=np.int64))
    return render_page(
        workbench,
        "merge.html",
        snapshot=snapshot,
        pair=(a, b),
        strips=(snapshot.faces(a, 24), snapshot.faces(b, 24)),
        between=between[:24].tolist(),
        n_between=len(between),
        similarity=float(snapshot.similarities[a, b]),
    )


def _split(request: Request) -> Response:
    workbench = workbench_of(request)
    snapshot = workbench.snapshot
    return render_page(workbench, "split.html", snapshot=snapshot, k=category_of(request, snapshot))


def _grow(request: Request) -> Response:
    workbench = workbench_of(request)
    snapshot = workbench.snapshot
    k = category_of(request, snapshot)
    return render_page(workbench, "grow.html", snapshot=snapshot, k=k, examples=snapshot.faces(k, STRIP))


def _images(request: Request) -> Response:
    workbench = workbench_of(request)
    about = request.query_params.get("kind", "")
    if about not in KINDS_OF_IMAGES:
        raise not_found("There is no such list of images.")
    return render_page(workbench, "images.html", about=about, title=KINDS_OF_IMAGES[about])


def _sheet(request: Request) -> Response:
    return render_page(workbench_of(request), "sheet.html")


def _search(request: Request) -> Response:
    workbench = workbench_of(request)
    snapshot = workbench.snapshot
    text = request.query_params.get("text", "")[:500]
    found = [k for k in snapshot.shown if text.lower() in snapshot.categories[k].name.lower()] if text else []
    return render_page(
        workbench,
        "search.html",
        snapshot=snapshot,
        text=text,
        found=found[:60],
        orders={key: title for key, title in ORDERS.items() if key not in ("typical", "extremes")},
        shown=SHOWN,
        columns={name: sorted(set(values)) for name, values in workbench.columns.items()},
    )


def _map(request: Request) -> Response:
    workbench = workbench_of(request)
    return render_page(workbench, "map.html", has_map=workbench.space is not None)


def _history(request: Request) -> Response:
    workbench = workbench_of(request)
    snapshot = workbench.snapshot
    events = workbench.decisions.log.events()
    counting = {event.number for event in effective(events)}
    latest: Sequence[Event] = events[::-1][:MOST_EVENTS]
    rows = [
        (event, describe_named(event.decision, snapshot.answer), event.number in counting)
        for event in latest
        if event.decision.kind not in ("undo", "redo")
    ]
    return render_page(workbench, "history.html", snapshot=snapshot, rows=rows, n_events=len(events))


PAGES = [
    Route("/", _queue),
    Route("/categories", _categories),
    Route("/category", _category),
    Route("/merge", _merge),
    Route("/split", _split),
    Route("/grow", _grow),
    Route("/images", _images),
    Route("/sheet", _sheet),
    Route("/search", _search),
    Route("/map", _map),
    Route("/history", _history),
]
