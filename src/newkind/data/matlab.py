"""Variables of MATLAB files."""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from newkind.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["read_matlab"]


def read_matlab(path: Path, variable: str) -> NDArray[Any]:
    """Read a variable of a MATLAB file as an array with at least one dimension."""
    from scipy.io import loadmat  # slow to import, and only one dataset needs it
    from scipy.io.matlab import MatReadError

    def error(problem: str) -> DataError:
        fix = "Unpack the devkit of the dataset again."
        return DataError(f"{path} {problem}.", fix=fix, code="damaged-dataset", path=str(path), line=None)

    if not path.is_file():
        raise error("is missing")
    try:
        content = loadmat(path, squeeze_me=True, variable_names=[variable])
    except (
        MatReadError,
        ArithmeticError,
        AttributeError,
        NameError,
        OSError,
        ValueError,
        TypeError,
        LookupError,
        NotImplementedError,
        MemoryError,
        zlib.error,
        struct.error,
    ) as problem:
        raise error(f"cannot be read as a MATLAB file ({problem})") from None
    if variable not in content:
        raise error(f"has no variable '{variable}'")
    return np.atleast_1d(content[variable])
