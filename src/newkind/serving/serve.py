"""Start the service, and stop it when its process is told to."""

from __future__ import annotations

import signal
from collections.abc import Callable

from newkind.export.onnx_model import ImageModel
from newkind.http_server import listen, run_app
from newkind.serving.app import ServiceOptions, make_app

__all__ = ["serve"]

SECONDS_TO_STOP = 30


def serve(model: ImageModel, options: ServiceOptions, *, port: int, ready: Callable[[str], None]) -> None:
    """Serve a model until SIGTERM or Ctrl-C; requests in progress are answered first.

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
    listener = listen(options.host, port)
    name = f"[{options.host}]" if ":" in options.host else options.host
    address = f"http://{name}:{listener.getsockname()[1]}"
    # uvicorn raises the signal again after it stopped; a service that stops when it is told to ends with code 0.
    signal.signal(signal.SIGTERM, lambda *_: None)
    run_app(make_app(model, options), listener, seconds_to_stop=SECONDS_TO_STOP, ready=lambda: ready(address))
