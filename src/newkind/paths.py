"""Folders for downloaded weights and computed tokens: below the user's cache directory, or below $NEWKIND_CACHE."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["cache_dir"]


def cache_dir(kind: str) -> Path:
    """Return the cache folder of one kind of file. It is created when something is first written to it.

    Parameters
    ----------
    kind : str
        Name of the subfolder, such as "weights" or "tokens".

    Returns
    -------
    Path

    Examples
    --------
    >>> cache_dir("tokens").name
    'tokens'
    """
    from platformdirs import user_cache_path

    root = os.environ.get("NEWKIND_CACHE")
    return (Path(root) if root else user_cache_path("newkind", appauthor=False)) / kind
