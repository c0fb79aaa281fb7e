"""Check of one image: size, format, content digest, or what is wrong with it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from newkind.data.decoding import PILLOW_ERRORS, decode_turned, open_checked
from newkind.data.items import EncodedImages, Images
from newkind.errors import BrokenImage

__all__ = ["ImageCheck", "check_image"]


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
        eighth = max(1, min(width, height) // 8)
        _, is_turned = decode_turned(content, name=images.names[index], shorter_side=eighth)
        width, height = (height, width) if is_turned else (width, height)
        return ImageCheck(width, height, format_name, digest)
    except BrokenImage as error:
        return ImageCheck(error=error.facts["reason"], code=error.code)
    except PILLOW_ERRORS as error:
        return ImageCheck(error=f"broken ({error})", code=BrokenImage.default_code)
