"""Arrays of a run with a checksum: a damaged one is found when it is read, instead of changing a result silently."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from newkind.data.npy import NUMPY_ERRORS
from newkind.mapped import file_sha256

__all__ = ["read_rows", "to_half"]

logger = logging.getLogger(__name__)


def to_half(features: NDArray[np.floating]) -> NDArray[np.float16]:
    """Features in half precision, as they are stored."""
    half: NDArray[np.float16] = np.clip(features, -65504, 65504).astype(np.float16)
    return half


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
