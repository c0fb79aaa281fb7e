"""Data for the scripts of the pages, as JSON; and images."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from newkind.data import printable
from newkind.errors import BrokenImage
from newkind.pipeline.split import propose_groups
from newkind.review.listing import list_lines
from newkind.review.originals import Original
from newkind.review.requests import bad_request, category_of, line_of, not_found, query_of, workbench_of
from newkind.review.snapshot import Snapshot
from newkind.review.work_queue import KINDS_OF_IMAGES, doubtful_lines, make_sheets

__all__ = ["DATA", "as_json"]

MOST_NAMES = 500
MOST_DOUBTFUL = 200
MOST_CHOICES = 3
MOST_GROUPS = 12
EXAMPLES = 4  # Images that show what a category on a sheet is.


def as_json(content: Any, status: int = 200) -> Response:
    """JSON in ASCII, so that every text can be sent."""
    return Response(json.dumps(content, allow_nan=False), status, media_type="application/json")


def image_list(snapshot: Snapshot, lines: NDArray[np.int64]) -> dict[str, Any]:
    """Rows with confidence in percent and status, as compact lists."""
    statuses, codes = np.unique(snapshot.answer.status[lines], return_inverse=True)
    return {
        "number": snapshot.number,
        "lines": lines.tolist(),
        "confidence": np.rint(100 * snapshot.answer.confidence[lines]).astype(int).tolist(),
        "status": codes.tolist(),
        "statuses": statuses.tolist(),
    }


def _state(request: Request) -> Response:
    return as_json({"number": workbench_of(request).decisions.log.last})


def _lines(request: Request) -> Response:
    workbench = workbench_of(request)
    snapshot = workbench.snapshot
    query = query_of(request, snapshot, workbench.columns)
    return as_json(image_list(snapshot, list_lines(snapshot, query, workbench.columns)))


def _names(request: Request) -> Response:
    files = workbench_of(request).snapshot.answer.files
    texts = [text for text in request.query_params.get("lines", "").split(",") if text]
    if len(texts) > MOST_NAMES:
        raise bad_request(f"At most {MOST_NAMES} images can be named at once.")
    lines = [line_of(text, len(files)) for text in texts]
    return as_json({"names": {line: printable(files[line]) for line in lines}})


def _about(request: Request) -> Response:
    workbench = workbench_of(request)
    return as_json(workbench.about(line_of(request.query_params.get("line", ""), len(workbench.snapshot.answer))))


def _categories(request: Request) -> Response:
    """All categories, the most similar ones to `near` first, if it is given."""
    snapshot = workbench_of(request).snapshot
    found = snapshot.shown
    if request.query_params.get("near"):
        k = category_of(request, snapshot, "near")
        found = [k, *(each.k for each in snapshot.neighbours(k, len(found)))]
    return as_json({"categories": [_category(snapshot, k) for k in found]})


def _category(snapshot: Snapshot, k: int) -> dict[str, Any]:
    state = snapshot.categories[k]
    return {
        "id": snapshot.key(k),
        "name": printable(state.name),
        "status": state.status,
        "n": len(snapshot.members[k]),
        "face": snapshot.face[k],
    }


def _doubtful(request: Request) -> Response:
    """The most doubtful images of one kind, after the first `skip` ones, which the page has shown already."""
    snapshot = workbench_of(request).snapshot
    about = request.query_params.get("kind", "")
    if about not in KINDS_OF_IMAGES:
        raise not_found("There is no such list of images.")
    answer, found = snapshot.answer, doubtful_lines(snapshot, about)
    skipped = request.query_params.get("skip", "")
    start = line_of(skipped, 10**9) if skipped else 0
    lines = found[start : start + MOST_DOUBTFUL]
    choices = [_choices(snapshot, int(line)) for line in lines]
    used = {k for each in choices for k, _ in each}
    return as_json(
        {
            "number": snapshot.number,
            "n": len(found),
            "images": [
                {"line": int(line), "name": printable(answer.files[line]), "choices": each}
                for line, each in zip(lines, choices, strict=True)
            ],
            "categories": {k: _category(snapshot, k) | {"faces": snapshot.faces(k, 6)} for k in used},
        }
    )


def _choices(snapshot: Snapshot, line: int) -> list[tuple[int, float | None]]:
    """Likely categories of an image with their probabilities, and then those with the most similar centres (None)."""
    answer = snapshot.answer
    pairs = (answer.category[line], answer.confidence[line]), (answer.second[line], answer.second_confidence[line])
    found: list[tuple[int, float | None]] = [(int(k), round(float(p), 3)) for k, p in pairs if k >= 0]
    others = [k for k in snapshot.nearest(line) if k not in {k for k, _ in found}]
    return [*found, *((k, None) for k in others)][:MOST_CHOICES]


def _sheet(request: Request) -> Response:
    """The first sheet, as one group of images per category; `n` counts the images of all sheets."""
    snapshot = workbench_of(request).snapshot
    sheets = make_sheets(snapshot)
    lines = sheets[0] if sheets else np.zeros(0, dtype=np.int64)
    own = snapshot.answer.category[lines]
    groups = [
        _category(snapshot, k) | {"examples": snapshot.examples(k, EXAMPLES), "lines": lines[own == k].tolist()}
        for k in dict.fromkeys(own.tolist())
    ]
    return as_json({"number": snapshot.number, "n": sum(map(len, sheets)), "groups": groups})


def _split(request: Request) -> Response:
    workbench = workbench_of(request)
    snapshot = workbench.snapshot
    k = category_of(request, snapshot)
    wanted = request.query_params.get("n", "")
    n = line_of(wanted, MOST_GROUPS + 1) if wanted else None
    if n is not None and n < 2:
        raise bad_request("A split needs at least two groups.")
    answer = snapshot.answer
    groups = propose_groups(workbench.run, answer, snapshot.categories[k].id, n=n)
    rows = [answer.rows_of(files) for files in groups]
    return as_json({"number": snapshot.number, "groups": [image_list(snapshot, lines) for lines in rows]})


def _map(request: Request) -> Response:
    workbench = workbench_of(request)
    found = workbench.image_map
    if found is None:
        raise not_found("This run has no features, so there is no map.")
    snapshot = workbench.snapshot
    answer = snapshot.answer
    decided = snapshot.is_decided[found.lines]
    is_new = np.array([*(state.status == "new" for state in snapshot.categories), False])
    kind = np.where(decided, 0, np.where(is_new[answer.category[found.lines]], 2, 1))
    statuses, codes = np.unique(answer.status[found.lines], return_inverse=True)
    return as_json(
        {
            "number": snapshot.number,
            "method": found.method,
            "lines": _base64(found.lines.astype("<i4")),
            "points": _base64((found.points * 65535).round().astype("<u2")),
            "category": _base64(answer.category[found.lines].astype("<i4")),
            "kind": _base64(kind.astype(np.uint8)),
            "confidence": _base64(np.rint(100 * answer.confidence[found.lines]).astype(np.uint8)),
            "status": _base64(codes.astype(np.uint8)),
            "statuses": statuses.tolist(),
            "categories": [printable(state.name) for state in snapshot.categories],
        }
    )


def _base64(values: NDArray[Any]) -> str:
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode()


async def _thumbnail(request: Request) -> Response:
    workbench = workbench_of(request)
    line = line_of(request.path_params["line"], len(workbench.images.place))
    found = workbench.thumbnails.remembered(line)  # without a thread, if possible
    try:
        if found is None:
            found = await run_in_threadpool(workbench.thumbnails.get, line)
        return _image(found, "private, max-age=3600")
    except BrokenImage as error:
        raise not_found(str(error)) from None


def _full(request: Request) -> Response:
    workbench = workbench_of(request)
    line = line_of(request.path_params["line"], len(workbench.images.place))
    try:
        return _image(workbench.originals.full(line), "private, max-age=60")
    except BrokenImage as error:
        raise not_found(str(error)) from None


def _image(image: Original, caching: str) -> Response:
    return Response(image.content, media_type=image.media_type, headers={"Cache-Control": caching})


DATA = [
    Route("/api/state", _state),
    Route("/api/lines", _lines),
    Route("/api/names", _names),
    Route("/api/about", _about),
    Route("/api/categories", _categories),
    Route("/api/doubtful", _doubtful),
    Route("/api/sheet", _sheet),
    Route("/api/split", _split),
    Route("/api/map", _map),
    Route("/thumb/{line}", _thumbnail),
    Route("/full/{line}", _full),
]
