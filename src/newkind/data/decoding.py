"""From a file to the picture a person would see.

Images are untrusted input: only the formats named here are tried (Pillow would otherwise hand a file to any of
its plug-ins), and an image that would fill the memory is refused by its header, before a pixel is read.
"""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from newkind.errors import BrokenImage

__all__ = ["IMAGE_SUFFIXES", "MAX_PIXELS", "MIN_SIDE", "PILLOW_ERRORS", "decode", "open_checked", "to_rgb"]

IMAGE_SUFFIXES = frozenset({".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".bmp", ".tif", ".tiff", ".gif"})
FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "DIB", "TIFF", "GIF")
PILLOW_ERRORS = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    struct.error,
    zlib.error,
)
"""What damaged files make Pillow raise; its documentation promises nothing."""
MAX_PIXELS = 178_956_970
"""Twice Pillow's own warning threshold: where Pillow itself would refuse. A 100-megapixel camera or scanner passes."""
# Pillow's own limit warns, or raises before the size can be told; `open_checked` has the size and refuses by it.
Image.MAX_IMAGE_PIXELS = None
MIN_SIDE = 4
"""A picture with fewer pixels on its shorter side shows nothing (the smallest set in use has 8)."""


def open_checked(content: bytes, *, name: str) -> Image.Image:
    """The image with its header read and its size checked, its pixels not yet decoded."""
    try:
        image = Image.open(io.BytesIO(content), formats=FORMATS)
    except UnidentifiedImageError:
        raise BrokenImage(f"{name}: not an image, or of a kind that is not read here.") from None
    except PILLOW_ERRORS as error:
        raise BrokenImage(f"{name}: cannot be opened ({error}).") from None
    width, height = image.size
    if width * height > MAX_PIXELS:
        raise BrokenImage(
            f"{name}: too large ({width} x {height} pixels, the limit is {MAX_PIXELS // 10**6} megapixels)."
        )
    if min(width, height) < MIN_SIDE:
        raise BrokenImage(
            f"{name}: too small ({width} x {height} pixels, at least {MIN_SIDE} x {MIN_SIDE} are needed)."
        )
    return image


def decode(content: bytes, *, name: str) -> Image.Image:
    """The image as RGB, upright, its first frame, on white where it is transparent. Raises BrokenImage."""
    with open_checked(content, name=name) as image:
        try:
            image.load()
            return to_rgb(ImageOps.exif_transpose(image))
        except PILLOW_ERRORS as error:
            raise BrokenImage(f"{name}: broken ({error}).") from None


def to_rgb(image: Image.Image) -> Image.Image:
    """Any Pillow mode to RGB, as a viewer shows it."""
    if image.mode == "RGB" and "transparency" not in image.info:
        return image
    if image.mode == "F" or image.mode.startswith("I"):
        return Image.fromarray(_to_eight_bits(np.asarray(image))).convert("RGB")
    if image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info:
        rgba = image.convert("RGBA")
        canvas = Image.new("RGBA", rgba.size, "white")
        return Image.alpha_composite(canvas, rgba).convert("RGB")
    return image.convert("RGB")


def _to_eight_bits(pixels: NDArray[Any]) -> NDArray[np.uint8]:
    """16-bit, 32-bit and floating-point grey values to 0-255: full scale of their range, as a viewer shows it.

    Integers are read as 16-bit unless they are larger; floating-point values as 0-1 where they fit, and
    otherwise, as for larger integers, between their own minimum and maximum (nothing says what white is).
    """
    values = np.nan_to_num(pixels.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    low, high = float(values.min()), float(values.max())
    if np.issubdtype(pixels.dtype, np.integer) and low >= 0 and high <= 65535:
        low, high = 0.0, 65535.0
    elif low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    scale = 255.0 / (high - low) if high > low else 0.0
    return np.rint((values - low) * scale).astype(np.uint8)
