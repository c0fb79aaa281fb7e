"""Whether data is the same as before, at the cost of asking for sizes: names alone do not tell, and reading all images takes too long."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from newkind.data.boxes import BoxImages
from newkind.data.items import Features, FileImages, Images

__all__ = ["identity_digest", "root_of"]


def identity_digest(items: Images | Features) -> str:
    """SHA-256 of what tells items from others with the same names.

    Parameters
    ----------
    items : Images or Features
        The items.

    Returns
    -------
    str
        Digest of the sizes of image files, of the values of features, and of the content of images in memory, as 64
        hexadecimal digits. Copies of the files in another folder have the same digest.

    Examples
    --------
    >>> import numpy as np
    >>> one, two = (identity_digest(Features(np.eye(3) * scale, ["a", "b", "c"])) for scale in (1.0, 2.0))
    >>> one == two
    False
    """
    found = hashlib.sha256()
    for part in items.identity():
        found.update(len(part).to_bytes(8, "little") + part)
    return found.hexdigest()


def root_of(items: Images | Features) -> str:
    """Folder that relative names of image files start from, resolved; empty if no name is relative."""
    files = items.source if isinstance(items, BoxImages) else items
    if not isinstance(files, FileImages) or all(map(os.path.isabs, files.names)):
        return ""
    return str(Path(files.root).resolve())
