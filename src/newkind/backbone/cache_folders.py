"""Listing and removing the token caches on this machine, those of features included."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from newkind.backbone.token_store import ENTRY
from newkind.errors import CacheError
from newkind.paths import cache_dir

__all__ = ["StoredCache", "list_caches", "remove_cache"]


@dataclass(frozen=True)
class StoredCache:
    """A cache folder, described without opening its tokens.

    Parameters
    ----------
    folder : Path
        Folder of the cache.
    place : str
        Name of the data.
    backbone : str
        Name of the backbone in timm.
    content : str
        What is stored per image: tokens and the number of views, or the feature of one view.
    n_images : int
        Number of images.
    gigabytes : float
        Size on disk.
    readable : bool, default=True
        Whether the folder is a valid cache; if not, only `folder` and `gigabytes` are meaningful.
    """

    folder: Path
    place: str
    backbone: str
    content: str
    n_images: int
    gigabytes: float
    readable: bool = True


def list_caches() -> list[StoredCache]:
    """List all token caches, including those that cannot be read.

    Returns
    -------
    list of StoredCache
        Sorted by name.
    """
    root = cache_dir("tokens")
    return [_describe(folder) for folder in sorted(root.iterdir()) if folder.is_dir()] if root.is_dir() else []


def remove_cache(name: str) -> float:
    """Delete a token cache.

    Parameters
    ----------
    name : str
        Name of its folder.

    Returns
    -------
    float
        Gigabytes that were freed.

    Raises
    ------
    CacheError
        With code `unknown-cache` (fact `known`, the names of all caches).
    """
    caches = {cache.folder.name: cache for cache in list_caches()}
    if name not in caches:
        raise CacheError(
            f"There is no token cache called {name}.",
            fix=f"Token caches on this machine: {', '.join(caches) or 'none'}.",
            code="unknown-cache",
            name=name,
            known=list(caches),
        )
    shutil.rmtree(caches[name].folder)
    return caches[name].gigabytes


def _describe(folder: Path) -> StoredCache:
    """Description of a cache folder."""
    size = sum(path.stat().st_size for path in folder.iterdir()) / 1e9
    try:
        about = json.loads((folder / "meta.json").read_text())["about"]
        n_images = (folder / "index.bin").stat().st_size // ENTRY.itemsize
        content = f"tokens, {about['n_views']} + 1 views" if "view" not in about else _view_name(int(about["view"]))
        content += f", {about['precision']}" if "precision" in about else ""
        return StoredCache(folder, about["place"], about["backbone"], content, n_images, size)
    except (OSError, ValueError, KeyError, TypeError):
        return StoredCache(folder, "?", "?", "?", 0, size, readable=False)


def _view_name(view: int) -> str:
    """Name of a view whose features are stored."""
    return f"features, {f'random view {view}' if view else 'evaluation view'}"
