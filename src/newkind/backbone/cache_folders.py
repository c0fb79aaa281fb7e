"""All token caches on this machine: what there is, and taking it away."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from newkind.backbone.token_store import ENTRY
from newkind.errors import CacheError
from newkind.paths import cache_dir

__all__ = ["ShelvedCache", "list_caches", "remove_cache"]


@dataclass(frozen=True)
class ShelvedCache:
    """One cache folder, read without opening its tokens."""

    folder: Path
    place: str
    backbone: str
    n_views: int
    n_images: int
    gigabytes: float
    readable: bool = True


def list_caches() -> list[ShelvedCache]:
    """Every folder in the token cache, those that cannot be read included."""
    root = cache_dir("tokens")
    return [_look(folder) for folder in sorted(root.iterdir()) if folder.is_dir()] if root.is_dir() else []


def remove_cache(name: str) -> float:
    """Deletes one cache by its folder's name; gives the gigabytes that are free again."""
    found = next((cache for cache in list_caches() if cache.folder.name == name), None)
    if found is None:
        names = ", ".join(cache.folder.name for cache in list_caches()) or "none"
        raise CacheError(f"There is no token cache called {name}.", fix=f"There are: {names}.")
    shutil.rmtree(found.folder)
    return found.gigabytes


def _look(folder: Path) -> ShelvedCache:
    size = sum(path.stat().st_size for path in folder.iterdir()) / 1e9
    try:
        about = json.loads((folder / "meta.json").read_text())["about"]
        n_images = (folder / "index.bin").stat().st_size // ENTRY.itemsize
        return ShelvedCache(folder, about["place"], about["backbone"], about["n_views"], n_images, size)
    except (OSError, ValueError, KeyError, TypeError):
        return ShelvedCache(folder, "?", "?", 0, 0, size, readable=False)
