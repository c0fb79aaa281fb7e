"""Commands of Newkind in forked processes, which start at once because everything is imported before, and their faults."""

import ctypes
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sessions import SESSIONS

__all__ = ["FAIL_FROM_NOW", "FAIL_ONCE", "KILL", "Ended", "Fault", "run_command"]

FAIL_ONCE, FAIL_FROM_NOW, KILL = 1, 2, 3
"""What happens at a call that changes a file; see failing_writes.c."""


@dataclass(frozen=True)
class Fault:
    """A fault at the call of this number that changes a file; number 0 only counts the calls."""

    number: int
    action: int = 0
    error: int = 0


@dataclass(frozen=True)
class Ended:
    """How a process ended. The exit code is negative for a signal."""

    code: int
    output: str
    seconds: float
    calls: int

    @property
    def plainly(self) -> bool:
        """Whether it ended with success or with one error that the user can fix, and not with a traceback."""
        return self.code in (0, 2) and "Traceback" not in self.output


def run_command(
    arguments: list[str],
    folders: tuple[Path, Path],
    log: Path,
    *,
    fault: Fault | None = None,
    kill_after: float | None = None,
) -> Ended:
    """Run a command in the first of the folders, with a fault, or until it is killed after some seconds."""
    reader, writer = os.pipe()
    started = time.perf_counter()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _be_the_command(arguments, folders, log, fault, writer)
    os.close(writer)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    seconds = time.perf_counter() - started
    with os.fdopen(reader, "rb") as pipe:
        calls = int(pipe.read() or 0)
    output = log.read_text(errors="replace") if log.exists() else ""
    return Ended(os.waitstatus_to_exitcode(status), output, seconds, calls)


def _be_the_command(
    arguments: list[str], folders: tuple[Path, Path], log: Path, fault: Fault | None, calls: int
) -> None:
    """Run the command and exit; nothing of the parent is cleaned up here."""
    code = 1
    try:
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        os.chdir(folders[0])
        os.environ["NEWKIND_CACHE"] = str(folders[0] / "cache")
        sys.argv = ["newkind", *arguments]
        from newkind.cli import main

        count = _arm(folders, fault) if fault else None
        code = _exit_code(SESSIONS.get(arguments[0], main))
        if count is not None:
            os.write(calls, str(count()).encode())
    except BaseException:  # noqa: BLE001 - shown in the log
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _exit_code(main: Callable[[], None]) -> int:
    try:
        main()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return 0


def _arm(folders: tuple[Path, Path], fault: Fault) -> Callable[[], int]:
    """Set a fault in the preloaded library; returns what counts the calls."""
    library = ctypes.CDLL(None)
    library.torture_calls.restype = ctypes.c_long
    one, other = (os.fsencode(folder) for folder in folders)
    library.torture_arm(one, other, ctypes.c_long(fault.number), fault.action, fault.error)
    found: Callable[[], int] = library.torture_calls
    return found
