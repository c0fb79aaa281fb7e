"""Persons who decide about a run, on the command line and on the review page.

Each step records one event. A session that starts again looks at the history and continues with the first step that is not
in it. What was acknowledged is written down apart, because it must never be lost.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

__all__ = ["ACKNOWLEDGED", "SESSIONS"]

ACKNOWLEDGED = Path("..") / "acknowledged"
"""Number of the last event that was acknowledged; beside the folder in which calls fail."""
COMMANDS = (
    ("rename", "run", "new-01", "Samoyed"),
    ("approve", "run", "new-01"),
    ("refit", "run", "--accept"),
)
DECISIONS: tuple[dict[str, Any], ...] = (
    {"kind": "rename", "category": "new-01", "name": "Samoyed"},
    {"kind": "junk", "lines": [40]},
    {"kind": "merge", "categories": ["new-02", "new-03"], "into": "new-02"},
)


def _remaining(n_steps: int) -> Iterator[int]:
    """Numbers of the steps that are not in the history, each of which must record one event."""
    from newkind.runs.decision_log import DecisionLog

    log = DecisionLog(Path("run"))
    while (done := log.last) < n_steps:
        yield done
        assert log.last == done + 1, f"step {done + 1} recorded {log.last - done} events"
        with suppress(OSError):  # where calls fail, this one may be the first that does
            ACKNOWLEDGED.write_text(str(log.last))


def decide() -> None:
    """Decide with commands."""
    from newkind.cli import main

    for step in _remaining(len(COMMANDS)):
        sys.argv = ["newkind", *COMMANDS[step]]
        try:
            main()
        except SystemExit as ended:
            if ended.code:
                raise


def review() -> None:
    """Decide on the review page."""
    from asgi_client import AsgiClient

    from newkind.errors import NewkindError
    from newkind.review.workbench import ReviewOptions, Workbench
    from newkind.runs.run import Run

    try:
        client = AsgiClient(Workbench(Run.open(Path("run")), ReviewOptions()))
        try:
            for step in _remaining(len(DECISIONS)):
                keys = {category: key for key, category in client.workbench.snapshot.ids.items()}
                decision = dict(DECISIONS[step])
                for name in ("category", "into"):
                    if name in decision:
                        decision[name] = keys[decision[name]]
                if "categories" in decision:
                    decision["categories"] = [keys[name] for name in decision["categories"]]
                answered = client.decide(**decision)
                if answered.status != 200:
                    print(answered.text)
                    raise SystemExit(2)
        finally:
            client.close()
    except NewkindError as error:  # as the command line does
        print(f"{error} [{error.code}]")
        raise SystemExit(2) from None


SESSIONS: dict[str, Callable[[], None]] = {"session:decide": decide, "session:review": review}
