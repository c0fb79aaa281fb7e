"""The HTTP service: routes, limits and metrics."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from ipaddress import ip_address
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from newkind import __version__
from newkind.export.onnx_model import ImageModel
from newkind.serving.batches import Batches, Overloaded, Unreadable
from newkind.serving.metrics import Metrics
from newkind.serving.requests import read_images

__all__ = ["ServiceOptions", "make_app"]


MOST_DIGITS = 19
MOST_BODIES = 8
"""Requests of the largest size whose bodies are in memory at a time."""


@dataclass(frozen=True, kw_only=True)
class ServiceOptions:
    """Options of the service.

    Parameters
    ----------
    host : str, default="127.0.0.1"
        Address to listen on.
    allow_hosts : tuple of str, default=()
        Further names under which clients may reach the service.
    max_queue : int, default=256
        Maximum number of images in the queue; requests beyond it get the status 503.
    max_body : int, default=32_000_000
        Most bytes of a request.
    max_seconds : float, default=120
        Longest time in seconds that a request may take to arrive.
    max_wait : float, default=0.01
        Longest time in seconds that an image waits for others.
    min_confidence : float, default=0.0
        Images with a lower confidence get the status `unsure`.
    """

    host: str = "127.0.0.1"
    allow_hosts: tuple[str, ...] = ()
    max_queue: int = 256
    max_body: int = 32_000_000
    max_seconds: float = 120
    max_wait: float = 0.01
    min_confidence: float = 0.0

    def accepts_host(self, value: str) -> bool:
        """Whether a value of the header Host is a name of this service, so that no other site can pretend to be it."""
        name = value.lower().rpartition(":")[0] if value.rpartition(":")[2].isdecimal() else value.lower()
        own = self.host.lower()
        names = (own, f"[{own}]", "127.0.0.1", "localhost", "[::1]", *(host.lower() for host in self.allow_hosts))
        return name in names or (own in ("0.0.0.0", "::") and _is_number(name))  # noqa: S104 - compared


def make_app(model: ImageModel, options: ServiceOptions) -> ASGIApp:
    """Application that serves one model."""
    app = Starlette(
        routes=[
            Route("/", _about),
            Route("/predict", _predict, methods=["POST"]),
            Route("/healthz", _health),
            Route("/metrics", _metrics),
        ],
        exception_handlers={HTTPException: _explain},
        lifespan=_lifespan,
    )
    app.state.model, app.state.metrics, app.state.is_ready = model, Metrics(), False
    app.state.batches = Batches(
        model, max_queue=options.max_queue, max_wait=options.max_wait, min_confidence=options.min_confidence
    )
    return _Limits(app, options)


@asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncIterator[None]:
    batches: Batches = app.state.batches
    batches.start()
    app.state.is_ready = True
    try:
        yield
    finally:
        app.state.is_ready = False
        await batches.stop()


async def _about(request: Request) -> Response:
    categories = [{"name": name, "status": status} for name, status in request.app.state.model.categories]
    return JSONResponse({"newkind": __version__, "categories": categories})


async def _health(request: Request) -> Response:
    is_ready = request.app.state.is_ready
    return JSONResponse({"status": "ok" if is_ready else "stopping"}, 200 if is_ready else 503)


async def _metrics(request: Request) -> Response:
    text = request.app.state.metrics.text(request.app.state.batches)
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4")


async def _predict(request: Request) -> Response:
    """Answer to each image, in order."""
    metrics: Metrics = request.app.state.metrics
    start, code = time.perf_counter(), 500
    try:
        images = await read_images(request)
        try:
            answers = await request.app.state.batches.predict(images)
        except Overloaded:
            raise HTTPException(503, "The queue is full. Try again later.", {"Retry-After": "1"}) from None
        results: list[dict[str, Any]] = []
        for (name, _), answer in zip(images, answers, strict=True):
            unreadable = {"file": name, "category": "", "status": "unreadable"}
            results.append(unreadable | {"reason": answer.reason} if isinstance(answer, Unreadable) else asdict(answer))
            metrics.images[results[-1]["status"]] += 1
        code = 200
        return _json({"results": results})
    except HTTPException as error:
        code = error.status_code
        raise
    finally:
        metrics.add_request(code, time.perf_counter() - start)


def _json(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """JSON in ASCII, so that a name with any characters can be sent back."""
    return Response(json.dumps(content, allow_nan=False), status, headers, "application/json")


async def _explain(request: Request, error: Exception) -> Response:  # noqa: ARG001 - as Starlette calls it
    if not isinstance(error, HTTPException):
        raise error
    return _json({"error": error.detail}, error.status_code, error.headers)


class _Limits:
    """ASGI middleware that refuses requests for other hosts, of other sites, and that are too large."""

    def __init__(self, app: ASGIApp, options: ServiceOptions) -> None:
        self.app, self.options = app, options
        self.n_bytes = 0  # of all requests that are inside

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        refusal = self._refusal(Headers(scope=scope))
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        size, end = 0, time.monotonic() + self.options.max_seconds

        async def receive_limited() -> Message:
            nonlocal size
            try:
                message = await asyncio.wait_for(receive(), max(end - time.monotonic(), 0.001))
            except TimeoutError:
                raise HTTPException(408, "The request took too long to arrive.") from None
            length = len(message.get("body", b""))
            size, self.n_bytes = size + length, self.n_bytes + length
            if size > self.options.max_body:
                raise HTTPException(413, "The request is too large.")
            if self.n_bytes > MOST_BODIES * self.options.max_body:
                raise HTTPException(503, "Too many large requests arrive. Try again later.", {"Retry-After": "1"})
            return message

        try:
            await self.app(scope, receive_limited, send)
        finally:
            self.n_bytes -= size

    def _refusal(self, headers: Headers) -> Response | None:
        if len(headers.getlist("host")) != 1 or not self.options.accepts_host(headers["host"]):
            return JSONResponse({"error": "This server does not answer requests for another host."}, 421)
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return JSONResponse({"error": "Requests of other sites are not accepted."}, 403)
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdecimal() and len(length) < MOST_DIGITS):
            return JSONResponse({"error": "The header Content-Length is not a number."}, 400)
        if int(length) > self.options.max_body:
            return JSONResponse({"error": "The request is too large."}, 413)
        return None


def _is_number(name: str) -> bool:
    """Whether a host is an address in numbers, such as 192.168.0.7 or [fe80::1]."""
    try:
        ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True
