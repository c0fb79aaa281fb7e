"""Commands of Newkind in forked processes, which start at once because everything is imported before, and their faults."""

import ctypes
import os
import re
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
NOTE = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_char_p)
NUMBERS = re.compile(r"[0-9a-f]{8,}|[0-9]+")
KEPT: list[object] = []
"""Functions that the library calls, which have to live as long as the process."""


@dataclass(frozen=True)
class Fault:
    """A fault at the call of this number that changes a file; number 0 only counts the calls."""

    number: int
    action: int = 0
    error: int = 0


@dataclass(frozen=True)
class Ended:
    """How a process ended. The exit code is negative for a signal.

    `sites` has one text per call that changes a file, if they were counted: what is called, on which file, and from where.
    """

    code: int
    output: str
    seconds: float
    sites: tuple[str, ...]

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
    noted = log.with_suffix(".sites")
    noted.unlink(missing_ok=True)
    started = time.perf_counter()
    child = os.fork()
    if child == 0:
        _be_the_command(arguments, folders, log, fault, noted)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    seconds = time.perf_counter() - started
    sites = tuple(noted.read_text().splitlines()) if noted.exists() else ()
    output = log.read_text(errors="replace") if log.exists() else ""
    return Ended(os.waitstatus_to_exitcode(status), output, seconds, sites)


def _be_the_command(
    arguments: list[str], folders: tuple[Path, Path], log: Path, fault: Fault | None, noted: Path
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

        sites = _arm(folders, fault) if fault else []
        code = _exit_code(SESSIONS.get(arguments[0], main))
        noted.write_text("".join(f"{site}\n" for site in sites))
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


def _arm(folders: tuple[Path, Path], fault: Fault) -> list[str]:
    """Set a fault in the preloaded library; returns a list that gets the site of every call, if they are only counted."""
    library, sites = ctypes.CDLL(None), list[str]()
    one, other = (os.fsencode(folder) for folder in folders)
    library.torture_arm(one, other, ctypes.c_long(fault.number), fault.action, fault.error)
    if not fault.action:
        note = NOTE(lambda call, path: sites.append(_site(call.decode(), os.fsdecode(path), folders)))
        KEPT.append(note)
        library.torture_note(note)
    return sites


def _site(call: str, path: str, folders: tuple[Path, Path]) -> str:
    """Name of a call, its file without numbers, and the lines of the package that lead to it."""
    frame, lines = sys._getframe(1), list[str]()
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module.split(".")[0] == "newkind":
            lines.append(f"{module.removeprefix('newkind.')}:{frame.f_lineno}")
        frame = frame.f_back  # type: ignore[assignment]
    for folder in folders:
        path = path.removeprefix(f"{folder}/")
    return f"{call} {NUMBERS.sub('#', path)!r} {' '.join(lines)}"
