"""Start the review server."""

from __future__ import annotations

from collections.abc import Callable

from newkind.http_server import listen, run_app
from newkind.review.app import make_app
from newkind.review.guard import Access
from newkind.review.workbench import ReviewOptions, Workbench
from newkind.runs.run import Run

__all__ = ["DEFAULT_PORT", "serve"]

DEFAULT_PORT = 8642


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
    listener = listen(host, *((DEFAULT_PORT, 0) if port is None else (port,)))
    access = Access(host, listener.getsockname()[1])
    app = make_app(Workbench(run, options), access)
    run_app(app, listener, seconds_to_stop=5, ready=lambda: ready(access.address))
