"""Decoding images with the digests of their contents; images that cannot be decoded are skipped with a reason."""

from __future__ import annotations

import hashlib
import logging

from PIL import Image

from newkind.data import Images, Skipped, printable
from newkind.errors import BrokenImage

__all__ = ["log_skipped"]

logger = logging.getLogger(__name__)
DIGEST_BYTES = 16
N_LOGGED = 5


def opened_with_digest(images: Images, index: int, *, shorter_side: int) -> tuple[Image.Image, bytes] | Skipped:
    """One image, decoded with at least `shorter_side` pixels if it has them, and the digest of its content; or why it cannot be decoded."""
    try:
        content = images.content(index)
        return images.open_content(index, content, shorter_side=shorter_side), _digest(content)
    except BrokenImage as error:
        return _skipped(images, index, error)


def content_digest(images: Images, index: int) -> bytes:
    """Digest of an image's content, DIGEST_BYTES long; empty if it cannot be read."""
    try:
        return _digest(images.content(index))
    except BrokenImage:
        return b""


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=DIGEST_BYTES).digest()


def _skipped(images: Images, index: int, error: BrokenImage) -> Skipped:
    return Skipped(images.names[index], error.facts.get("reason", error.what), error.code)


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
