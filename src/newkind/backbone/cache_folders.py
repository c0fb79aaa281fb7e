"""Listing and removing the token caches on this machine, those of features included."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from newkind.atomic import write_errors
from newkind.backbone.record_layout import RecordLayout
from newkind.backbone.token_store import StoreFile, TokenStore, entry_dtype
from newkind.errors import CacheError, NewkindError
from newkind.paths import cache_dir
from newkind.schema import InvalidJson, read_json_file

__all__ = ["StoredCache", "list_caches", "remove_cache", "verify_cache"]


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


def verify_cache(name: str) -> list[int]:
    """Read a whole token cache and compare it with its checksums.

    Parameters
    ----------
    name : str
        Name of its folder.

    Returns
    -------
    list of int
        Numbers of the damaged records.

    Raises
    ------
    CacheError
        With code `unknown-cache`, or `damaged` if the index or the description cannot be read.
    """
    folder = _find(name).folder
    try:
        meta = read_json_file(folder / "meta.json", StoreFile)
        layout, about = RecordLayout(**meta["layout"]), meta["about"]
    except (OSError, InvalidJson, TypeError, NewkindError) as error:
        raise CacheError(
            f"{folder / 'meta.json'} cannot be read ({error}).",
            fix=f"Remove it with: newkind cache prune {name}",
            code="damaged",
            folder=folder,
        ) from None
    store = TokenStore(folder, layout, about=about)
    try:
        return store.damaged()
    finally:
        store.close()


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
        With code `unknown-cache` (fact `known`, the names of all caches), or `cannot-write`.
    """
    cache = _find(name)
    with write_errors(cache.folder, error=CacheError):
        shutil.rmtree(cache.folder)
    return cache.gigabytes


def _find(name: str) -> StoredCache:
    """The cache of this name."""
    caches = {cache.folder.name: cache for cache in list_caches()}
    if name not in caches:
        raise CacheError(
            f"There is no token cache called {name}.",
            fix=f"Token caches on this machine: {', '.join(caches) or 'none'}.",
            code="unknown-cache",
            name=name,
            known=list(caches),
        )
    return caches[name]


def _describe(folder: Path) -> StoredCache:
    """Description of a cache folder; whatever is wrong with one must not hide the others."""
    size = 0.0
    try:
        size = sum(entry.stat(follow_symlinks=False).st_size for entry in os.scandir(folder)) / 1e9
        meta = read_json_file(folder / "meta.json", StoreFile)
        about, n_views = meta["about"], RecordLayout(**meta["layout"]).n_views
        entry = entry_dtype(1 if meta["format"] == 1 else n_views + 1)
        n_images = sum(index.stat().st_size // entry.itemsize for index in folder.glob("index*.bin"))
        content = f"tokens, {n_views} + 1 views" if "view" not in about else _view_name(int(about["view"]))
        content += f", {about['precision']}" if "precision" in about else ""
        return StoredCache(folder, str(about["place"]), str(about["backbone"]), content, n_images, size)
    except (OSError, ValueError, KeyError, TypeError, OverflowError, CacheError):
        return StoredCache(folder, "?", "?", "?", 0, size, readable=False)


def _view_name(view: int) -> str:
    """Name of a view whose features are stored."""
    return f"features, {f'random view {view}' if view else 'evaluation view'}"
