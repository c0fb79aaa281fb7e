"""Start the service, and stop it when its process is told to."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable

import uvicorn

from newkind.errors import ConfigError
from newkind.export.onnx_model import ImageModel
from newkind.serving.app import ServiceOptions, make_app

__all__ = ["serve"]

SECONDS_TO_STOP = 30


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


def serve(model: ImageModel, options: ServiceOptions, *, port: int, ready: Callable[[str], None]) -> None:
    """Serve a model until SIGTERM or Ctrl-C; requests that are inside are answered first.

    Parameters
    ----------
    model : ImageModel
        The model.
    options : ServiceOptions
        Address and limits.
    port : int
        Port to listen on; 0 for a free one.
    ready : callable
        Called with the address, once the service answers.
    """
    listener = _listen(options.host, port)
    config = uvicorn.Config(
        make_app(model, options),
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="on",
        ws="none",
        timeout_graceful_shutdown=SECONDS_TO_STOP,
    )
    name = f"[{options.host}]" if ":" in options.host else options.host
    address = f"http://{name}:{listener.getsockname()[1]}"
    # uvicorn raises the signal again after it stopped; a service that stops when it is told to ends with code 0.
    signal.signal(signal.SIGTERM, lambda *_: None)
    with listener:
        _Server(config, lambda: ready(address)).run(sockets=[listener])


def _listen(host: str, port: int) -> socket.socket:
    try:
        listener = socket.socket(socket.getaddrinfo(host, None)[0][0])
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except (OSError, OverflowError):
            listener.close()
            raise
        return listener
    except (OSError, OverflowError) as error:
        raise ConfigError(
            f"Port {port} of {host} cannot be used ({error}).",
            fix="Choose another `port`.",
            code="port-taken",
            host=host,
            port=port,
        ) from None
