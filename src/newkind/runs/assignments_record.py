"""Row count and checksum of assignments.csv in config.json, so that a part of the file is not taken for the whole.

A file with another number of rows is refused. One with as many rows and other content was edited by hand: it is used, with
a warning.
"""

from __future__ import annotations

import hashlib
import logging
from typing import Any

from newkind import atomic
from newkind.errors import RunError
from newkind.runs.run import Run

__all__ = ["check_recorded", "write_recorded"]

logger = logging.getLogger(__name__)


def write_recorded(run: Run, text: str, *, n_rows: int) -> None:
    """Write assignments.csv and its record.

    The record of the file before is kept until the new file is in place: whenever the process is killed, one of the two
    records is that of the file.
    """
    content = atomic.to_bytes(text)
    record = {"rows": n_rows, "sha256": hashlib.sha256(content).hexdigest()}
    if not run.config_file.exists():
        atomic.write_bytes(run.assignments_file, content)
        return
    run.update_config(assignments=[*_records(run)[-1:], record])
    atomic.write_bytes(run.assignments_file, content)
    run.update_config(assignments=[record])


def check_recorded(run: Run, content: bytes, *, n_rows: int) -> None:
    """Compare assignments.csv with its record. Runs of earlier versions have none.

    Raises
    ------
    RunError
        With the code `incomplete`.
    """
    records = _records(run) if run.config_file.exists() else []
    digest = hashlib.sha256(content).hexdigest()
    if not records or any(record.get("sha256") == digest for record in records):
        return
    expected = [record.get("rows") for record in records]
    if n_rows not in expected:
        raise RunError(
            f"{run.assignments_file} has {n_rows:,} rows, but the run wrote {expected[-1]:,}.",
            fix="Restore the file, or repeat the discover command that made the run.",
            code="incomplete",
            file=run.assignments_file,
        )
    logger.warning(f"{run.assignments_file} was changed after the run wrote it.")


def _records(run: Run) -> list[dict[str, Any]]:
    found = run.config().get("assignments")
    rows = found if isinstance(found, list) else []
    return [row for row in rows if isinstance(row, dict) and isinstance(row.get("rows"), int)]
