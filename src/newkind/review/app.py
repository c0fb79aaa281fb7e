"""The review application: routes, errors, static files, and the guard around all of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import cache
from pathlib import Path

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from newkind.errors import NewkindError
from newkind.review.data_routes import DATA, as_json
from newkind.review.decision_routes import DECISIONS
from newkind.review.guard import Access, Guard
from newkind.review.page_routes import PAGES
from newkind.review.pages import render_message
from newkind.review.workbench import Workbench

__all__ = ["make_app"]

STATIC = Path(__file__).parent / "static"
TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
STATUSES = {
    "stale": 409,
    "learned-by-refit": 409,
    "locked": 503,
    "cannot-write": 503,
    "unreadable": 503,
    "not-found": 404,
    "unknown-category": 404,
    "unknown-file": 404,
    "read-only": 403,
}
IDLE_SECONDS = 2.0


def make_app(workbench: Workbench, access: Access) -> ASGIApp:
    """Application for one run.

    Parameters
    ----------
    workbench : Workbench
        The run.
    access : Access
        What requests must prove.

    Returns
    -------
    ASGI application
    """
    app = Starlette(
        routes=[*PAGES, *DATA, *DECISIONS, Route("/static/{name}", _static)],
        exception_handlers={NewkindError: _explain, HTTPException: _explain_http},
        lifespan=_lifespan,
    )
    app.router.redirect_slashes = False
    app.state.workbench = workbench
    return Guard(app, access)


@asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncIterator[None]:
    """Write the answer whenever nothing was decided for a while, and at the end."""
    workbench: Workbench = app.state.workbench
    writing = asyncio.create_task(_write_when_idle(workbench))
    try:
        yield
    finally:
        writing.cancel()
        with suppress(asyncio.CancelledError):
            await writing
        await run_in_threadpool(workbench.close)


async def _write_when_idle(workbench: Workbench) -> None:
    seen = await run_in_threadpool(lambda: workbench.decisions.log.last)
    while True:
        await asyncio.sleep(IDLE_SECONDS)
        with suppress(NewkindError):  # a full disk: the log has everything, and the next attempt may succeed
            last = await run_in_threadpool(lambda: workbench.decisions.log.last)
            if last == seen:
                await run_in_threadpool(workbench.write_answer)
            seen = last


def _is_for_script(request: Request) -> bool:
    return request.url.path.startswith(("/api/", "/thumb/", "/full/", "/static/"))


async def _explain(request: Request, error: Exception) -> Response:
    """Response to a request that failed, with the code of the error."""
    if not isinstance(error, NewkindError):
        raise error
    status = STATUSES.get(error.code, 400)
    text = f"{error.what} {error.fix}".strip().replace("`", "")
    if _is_for_script(request):
        return as_json({"code": error.code, "text": text}, status)
    return render_message("Not found" if status == 404 else "This did not work", text, status)


async def _explain_http(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    if _is_for_script(request):
        return as_json({"code": "http", "text": error.detail}, error.status_code)
    return render_message(error.detail, "There is nothing at this address.", error.status_code)


@cache
def _static_files() -> dict[str, bytes]:
    """Content of every file of the folder, by name; other names cannot be asked for."""
    return {path.name: path.read_bytes() for path in STATIC.iterdir() if path.suffix in TYPES}


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    content = _static_files().get(name)
    if content is None:
        raise HTTPException(404)
    return Response(content, media_type=TYPES[Path(name).suffix], headers={"Cache-Control": "no-cache"})
