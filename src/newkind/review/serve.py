"""Start the review server."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable

import uvicorn

from newkind.errors import ConfigError
from newkind.review.app import make_app
from newkind.review.guard import Access
from newkind.review.workbench import ReviewOptions, Workbench
from newkind.runs.run import Run

__all__ = ["DEFAULT_PORT", "serve"]

logger = logging.getLogger(__name__)
DEFAULT_PORT = 8642


class _Server(uvicorn.Server):
    """Server that says where it is once it answers."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self.ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then tell."""
        await super().startup(sockets)
        if self.started:
            self.ready()


def serve(
    run: Run,
    options: ReviewOptions,
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
    ready: Callable[[str], None],
) -> None:
    """Serve the review of a run until the process is stopped.

    Parameters
    ----------
    run : Run
        A finished run.
    options : ReviewOptions
        How it is reviewed.
    host : str, default="127.0.0.1"
        Address to listen on.
    port : int, optional
        Port to listen on. Default: 8642, or a free one if it is taken.
    ready : callable
        Called with the address to open, once the server answers.
    """
    listener = _listen(host, port)
    access = Access(host, listener.getsockname()[1])
    app = make_app(Workbench(run, options), access)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,  # it would contain the token
        server_header=False,
        lifespan="on",
        ws="none",
        timeout_graceful_shutdown=5,
    )
    with listener:
        _Server(config, lambda: ready(access.address)).run(sockets=[listener])


def _listen(host: str, port: int | None) -> socket.socket:
    """Listening socket; without a port, on the default port or a free one."""
    try:
        family = socket.getaddrinfo(host, None)[0][0]
        for wanted in (DEFAULT_PORT, 0) if port is None else (port,):
            listener = socket.socket(family)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind((host, wanted))
                return listener
            except OSError as error:
                listener.close()
                problem = error
        raise problem
    except (OSError, OverflowError) as error:
        raise ConfigError(
            f"Port {port} of {host} cannot be used ({error}).",
            fix="Choose another `port`.",
            code="port-taken",
            host=host,
            port=port,
        ) from None
