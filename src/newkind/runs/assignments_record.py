"""Row count and checksum of the model's assignments in config.json, so that a part of the file is not taken for the whole.

A file with another number of rows is refused. One with as many rows and other content was edited by hand: it is used, with
a warning.
"""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path

from newkind import atomic
from newkind.errors import RunError
from newkind.runs.run import Run

__all__ = ["check_recorded", "write_recorded"]

logger = logging.getLogger(__name__)


def write_recorded(run: Run, path: Path, text: str, *, n_rows: int) -> None:
    """Write the assignments of a model and their record, in the folder of an answer that is not in use yet."""
    content = atomic.to_bytes(text)
    atomic.write_bytes(path, content)
    run.update_config(assignments={"rows": n_rows, "sha256": hashlib.sha256(content).hexdigest()})


def check_recorded(run: Run, path: Path, *, n_rows: int) -> None:
    """Compare the assignments of a model with their record. Runs of earlier versions have none.

    Raises
    ------
    RunError
        With the code `incomplete`.
    """
    record = run.config().get("assignments") if run.config_file.exists() else None
    if not isinstance(record, dict) or record.get("sha256") == hashlib.sha256(path.read_bytes()).hexdigest():
        return
    if n_rows != record.get("rows"):
        raise RunError(
            f"{path} has {n_rows:,} rows, but the run wrote {record.get('rows')}.",
            fix="Restore the file, or repeat the discover command that made the run.",
            code="incomplete",
            file=path,
        )
    logger.warning(f"{path} was changed after the run wrote it.")
