"""Arrays of a run with a checksum: a damaged one is found when it is read, instead of changing a result silently."""

from __future__ import annotations

import hashlib
import io
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from newkind import atomic
from newkind.data.npy import NUMPY_ERRORS
from newkind.mapped import file_sha256

__all__ = ["read_rows", "to_half", "write_rows"]

logger = logging.getLogger(__name__)


def to_half(features: NDArray[np.floating]) -> NDArray[np.float16]:
    """Features in half precision, as they are stored."""
    half: NDArray[np.float16] = np.clip(features, -65504, 65504).astype(np.float16)
    return half


def write_rows(path: Path, dtype: str, shape: tuple[int, int], parts: Iterable[NDArray[Any]]) -> str:
    """Write an .npy file of rows that come in parts.

    Parameters
    ----------
    path : Path
        The file.
    dtype : str
        Type of the values, as in NumPy's headers: `<f2`.
    shape : tuple of int
        Number of rows and columns.
    parts : iterable of ndarray
        The rows, in order.

    Returns
    -------
    str
        SHA-256 of the file.
    """
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": dtype, "fortran_order": False, "shape": shape})
    digest = hashlib.sha256(header.getvalue())
    with atomic.replacing(path) as file:
        file.write(header.getvalue())
        for part in parts:
            content = part.tobytes()
            digest.update(content)
            file.write(content)
    return digest.hexdigest()


def read_rows(path: Path, dtype: str, sha256: str | None) -> NDArray[Any] | None:
    """Rows of an .npy file, memory-mapped.

    Parameters
    ----------
    path : Path
        The file.
    dtype : str
        Type of its values.
    sha256 : str or None
        Its checksum; None for runs of earlier versions, which have none.

    Returns
    -------
    ndarray of shape (n, d) or None
        None if there is no such file, or if it is damaged, which is logged.
    """
    if not path.exists():
        return None
    try:
        if sha256 is not None and file_sha256(path) != sha256:
            raise ValueError("its sha256 is not the one in config.json")
        found: NDArray[Any] = np.load(path, allow_pickle=False, mmap_mode="r")
        if found.ndim != 2 or found.dtype != np.dtype(dtype):
            raise ValueError(f"expected rows of {np.dtype(dtype)}, got {found.dtype} of shape {found.shape}")
    except NUMPY_ERRORS as error:
        logger.warning(f"{path} is damaged and is not used ({error}).")
        return None
    return found
