"""Several processes of one job, forked from a server that has imported everything once."""

import multiprocessing
import os
import socket
import time
from collections.abc import Callable
from typing import Any

TIMEOUT = 240
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["newkind.api", "newkind.pipeline.discover", "newkind.backbone.loader", "timm"])


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def _member(rank: int, n: int, port: int, function: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    """One process of the job."""
    import torch

    from newkind import distributed

    torch.set_num_threads(1)
    variables = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": n, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    os.environ.update({name: str(value) for name, value in variables.items()})
    distributed.init_from_environment()
    try:
        function(*arguments)
    finally:
        distributed.shutdown()


def run_processes(n: int, function: Callable[..., None], *arguments: Any) -> None:
    """Run a function of a test module in `n` processes with a process group; all of them have to succeed."""
    port = free_port()
    started = [CONTEXT.Process(target=_member, args=(rank, n, port, function, arguments)) for rank in range(n)]
    for process in started:
        process.start()
    deadline = time.monotonic() + TIMEOUT
    for process in started:
        process.join(timeout=max(deadline - time.monotonic(), 0))
    codes = [process.exitcode for process in started]
    for process in started:
        if process.exitcode is None:
            process.kill()
    assert codes == [0] * n
