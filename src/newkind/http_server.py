"""A listening socket, and a server that tells when it answers; the review page and the service run on it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from newkind.errors import ConfigError

__all__ = ["listen", "run_app"]

SECONDS_FOR_HEAD = 20.0
"""Time that a client has to send the head of a request."""


class _Protocol(H11Protocol):
    """Protocol that closes a connection whose client does not send the head of a request in time.

    uvicorn waits forever, so that a few hundred silent clients would use up all file descriptors.
    """

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start to wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Stop to wait if a head is complete; wait for the rest of a later one."""
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self._stop()
        elif (self.cycle is None or self.cycle.response_complete) and self._deadline is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop to wait."""
        self._stop()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._deadline = self.loop.call_later(SECONDS_FOR_HEAD, self.transport.close)

    def _stop(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class _Server(uvicorn.Server):
    """Server that tells when it answers."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self.ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then tell."""
        await super().startup(sockets)
        if self.started:
            self.ready()


def run_app(app: object, listener: socket.socket, *, seconds_to_stop: int, ready: Callable[[], None]) -> None:
    """Run an ASGI application on a socket until the process is stopped.

    Parameters
    ----------
    app : ASGI application
        The application.
    listener : socket.socket
        As from `listen`; closed at the end.
    seconds_to_stop : int
        Seconds that requests may take after the process was told to stop.
    ready : callable
        Called once the server answers.
    """
    config = uvicorn.Config(
        app,  # type: ignore[arg-type]
        log_level="warning",
        access_log=False,  # it would contain the token of the review page
        server_header=False,
        lifespan="on",
        ws="none",
        http=_Protocol,
        timeout_graceful_shutdown=seconds_to_stop,
    )
    with listener:
        _Server(config, ready).run(sockets=[listener])


def listen(host: str, *ports: int) -> socket.socket:
    """Listening socket on the first of some ports that is free.

    Parameters
    ----------
    host : str
        Address to listen on.
    *ports : int
        Ports in the order in which they are tried; 0 for any free one.

    Returns
    -------
    socket.socket

    Raises
    ------
    ConfigError
        With the code `port-taken` if none can be used.
    """
    problem: Exception = OSError("no port")
    try:
        family = socket.getaddrinfo(host, None)[0][0]
        for port in ports:
            listener = socket.socket(family)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind((host, port))
                return listener
            except (OSError, OverflowError) as error:
                listener.close()
                problem = error
    except OSError as error:
        problem = error
    raise ConfigError(
        f"Port {ports[0]} of {host} cannot be used ({problem}).",
        fix="Choose another `port`.",
        code="port-taken",
        host=host,
        port=ports[0],
    )
