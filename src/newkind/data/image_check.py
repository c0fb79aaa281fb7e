"""Check of one image: size, format, content digest, or what is wrong with it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from PIL import ImageOps

from newkind.data.decoding import PILLOW_ERRORS, open_checked, to_rgb
from newkind.data.items import EncodedImages, Images
from newkind.errors import BrokenImage

__all__ = ["ImageCheck", "check_image"]

ORIENTATION = 0x0112
"""EXIF tag of the orientation."""
SIDEWAYS = (5, 6, 7, 8)
"""Orientations in which width and height are swapped in the file."""


@dataclass(frozen=True, slots=True)
class ImageCheck:
    """Result of `check_image`.

    Parameters
    ----------
    width, height : int, default=0
        Size of the upright image in pixels.
    format : str, default=""
        File format in Pillow's name; "array" for images in memory, "box" for parts of images.
    digest : bytes, default=b""
        Digest of the content; equal for exact duplicates.
    error : str, default=""
        Why the image cannot be used; empty if it can.
    code : str, default=""
        Code of the error.
    """

    width: int = 0
    height: int = 0
    format: str = ""
    digest: bytes = b""
    error: str = ""
    code: str = ""


def check_image(images: Images, index: int) -> ImageCheck:
    """Decode one image completely; problems of the image are returned, not raised."""
    try:
        content = images.content(index)
        digest = hashlib.blake2b(content, digest_size=16).digest()
        if not isinstance(images, EncodedImages):
            return ImageCheck(*images.open_content(index, content).size, images.kind, digest)
        with open_checked(content, name=images.names[index]) as image:
            format_name, (width, height) = image.format or "", image.size
            # A JPEG decoded at an eighth of its size is faster, and every byte of it is still read.
            image.draft("RGB", (max(1, width // 8), max(1, height // 8)))
            image.load()
            if image.getexif().get(ORIENTATION, 1) in SIDEWAYS:
                width, height = height, width
            to_rgb(ImageOps.exif_transpose(image))
        return ImageCheck(width, height, format_name, digest)
    except BrokenImage as error:
        return ImageCheck(error=error.facts["reason"], code=error.code)
    except PILLOW_ERRORS as error:
        return ImageCheck(error=f"broken ({error})", code=BrokenImage.default_code)
