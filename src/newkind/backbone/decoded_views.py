"""Decoding images into views; images that cannot be decoded are skipped with a reason."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable

from PIL import Image
from torch import Tensor

from newkind.data import Images, Skipped, printable
from newkind.errors import BrokenImage

__all__ = ["log_skipped"]

logger = logging.getLogger(__name__)
DIGEST_BYTES = 16
N_LOGGED = 5


def views_or_skipped(images: Images, index: int, views_of: Callable[[Image.Image], Tensor]) -> Tensor | Skipped:
    """Views of one decoded image, or its name and the reason why it cannot be decoded."""
    try:
        return views_of(images.open(index))
    except BrokenImage as error:
        return Skipped(images.names[index], error.facts.get("reason", error.what), error.code)


def content_digest(images: Images, index: int) -> bytes:
    """Digest of an image's content, DIGEST_BYTES long; empty if it cannot be read."""
    try:
        return hashlib.blake2b(images.content(index), digest_size=DIGEST_BYTES).digest()
    except BrokenImage:
        return b""


def log_skipped(skipped: tuple[Skipped, ...]) -> None:
    """Log the first images that were skipped, with the reasons, and the number of the others.

    Parameters
    ----------
    skipped : tuple of Skipped
        Images that cannot be used.
    """
    for item in skipped[:N_LOGGED]:
        logger.warning(f"Skipped {printable(item.name)}: {item.reason}.")
    if len(skipped) > N_LOGGED:
        logger.warning(f"Skipped {len(skipped) - N_LOGGED} more images; `newkind inspect` lists them.")
