"""Names in a text file, one per line."""

from __future__ import annotations

import sys
from pathlib import Path

from newkind.errors import DataError

__all__ = ["read_names"]


def read_names(path: Path) -> list[str]:
    """Lines of a text file without those that are empty; `-` is the standard input.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    list of str
        Names; bytes that are not UTF-8 become surrogates, as in file names.
    """
    try:
        content = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}).", code="missing-file", path=str(path)) from None
    lines = content.decode("utf-8-sig", "surrogateescape").split("\n")
    return [line.removesuffix("\r") for line in lines if line.removesuffix("\r")]
