"""Variables of MATLAB files, read in a process of their own: the parser crashes on some damaged files."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

from newkind.data.names import printable
from newkind.errors import DataError
from newkind.schema import InvalidJson, parse_json

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["read_matlab"]

LONGEST = 600
"""Seconds after which reading is given up."""
PROGRAM = """
import json, sys
import numpy as np
from scipy.io import loadmat

def plain(value):
    value = value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
    return value if isinstance(value, (str, int, float)) and value == value else None

content = loadmat(sys.argv[1], squeeze_me=True, variable_names=[sys.argv[2]])
if sys.argv[2] not in content:
    sys.exit("it has no variable " + sys.argv[2])
found = np.atleast_1d(content[sys.argv[2]])
names = found.dtype.names
rows = found.reshape(-1)
print(json.dumps([{n: plain(row[n]) for n in names} if names else plain(row) for row in rows]))
"""


def read_matlab(path: Path, variable: str) -> list[Any]:
    """Read a variable of a MATLAB file: a list of texts and numbers, or of dicts of them for an array of structures."""

    def error(problem: str) -> DataError:
        fix = "Unpack the devkit of the dataset again."
        return DataError(f"{path} {problem}.", fix=fix, code="damaged-dataset", path=str(path), line=None)

    if not path.is_file():
        raise error("is missing")
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", PROGRAM, str(path), variable],
            capture_output=True,
            check=False,
            timeout=LONGEST,
        )
        if done.returncode:
            lines = done.stderr.decode("utf-8", "replace").strip().splitlines() if done.returncode > 0 else []
            raise error(f"cannot be read as a MATLAB file ({printable(lines[-1][:200]) if lines else 'a crash'})")
        return parse_json(done.stdout, list)
    except (InvalidJson, subprocess.TimeoutExpired) as problem:
        raise error(f"cannot be read as a MATLAB file ({str(problem)[:200]})") from None
