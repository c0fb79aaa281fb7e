"""Where Newkind keeps what it has fetched or computed: the user's cache directory, or $NEWKIND_CACHE."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["cache_dir"]


def cache_dir(room: str) -> Path:
    """The folder for `room` ("weights", "tokens", ...); it is made when something is first put there."""
    from platformdirs import user_cache_path

    root = os.environ.get("NEWKIND_CACHE")
    return (Path(root) if root else user_cache_path("newkind", appauthor=False)) / room
