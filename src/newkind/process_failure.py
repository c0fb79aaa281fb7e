"""A process of a job fails: the others end too, and each machine prints one sentence."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import torch.distributed as dist

from newkind.errors import NewkindError

__all__ = ["clear_message", "is_first_to_say", "needs_every_process"]

_said: list[bool] = []
"""Whether this process is the one of its machine that prints, once that is decided."""


@contextmanager
def clear_message() -> Iterator[None]:
    """Print an error without a traceback if the launcher ends this process because another one has ended.

    The launcher sends SIGTERM to all processes when one has ended, at any moment. In a job of several processes, SIGTERM
    prints the error `process-died`, unless another process has printed its error, and exits with code 2. After an error it
    still does, because the launcher may be faster than the message of that error on its way to the terminal.
    """

    def ended(*_: object) -> None:
        # Exit at once, in any state: files are written atomically.
        if is_first_to_say():
            error = _peer_died()
            os.write(2, f"Error: {error} [{error.code}]\n".encode())
        os._exit(2)

    before = signal.signal(signal.SIGTERM, ended) if _n_processes() > 1 else None
    yield
    if before is not None:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def needs_every_process() -> Iterator[None]:
    """Around a call that communicates. It fails only if another process has ended, whatever the backend's words are.

    Raises
    ------
    NewkindError
        With code `process-died`.
    """
    try:
        yield
    except RuntimeError as error:
        raise _peer_died() from error


def is_first_to_say() -> bool:
    """Whether this is the first process of its machine that prints an error; the others have nothing to add.

    Returns
    -------
    bool
        Always the same in one process. True without a process group.
    """
    if not _said:
        _said.append(_n_processes() == 1 or _claim())
    return _said[0]


def _claim() -> bool:
    """Whether no other process of this machine has claimed to print; yes if that cannot be known any more."""
    try:
        store = dist.distributed_c10d._get_default_store()
        return int(store.add(f"newkind/said/{os.environ.get('GROUP_RANK', '0')}", 1)) == 1
    except RuntimeError:
        return True


def _n_processes() -> int:
    """Number of processes of the job."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def _peer_died() -> NewkindError:
    """Error for the failure of another process."""
    return NewkindError(
        "Another process of this job has failed or was stopped. What was computed until then is kept.",
        fix="Run the same command again to resume.",
        code="process-died",
    )
