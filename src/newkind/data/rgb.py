"""Conversion of decoded images to upright RGB, strip by strip, so that no copy has the size of a large image."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

__all__ = ["SIDEWAYS", "to_rgb", "turn_of"]

STRIP_PIXELS = 2**20
"""Pixels that are converted at a time."""
ORIENTATION = 0x0112
"""EXIF tag of the orientation."""
TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
"""What makes an image of an orientation upright."""
SIDEWAYS = tuple(turn for orientation, turn in TURNS.items() if orientation >= 5)
"""Turns that swap width and height."""


def turn_of(image: Image.Image) -> Image.Transpose | None:
    """What makes an image upright, by its EXIF data; None for nothing."""
    try:
        orientation = image.getexif().get(ORIENTATION, 1)
    except (SyntaxError, ValueError, struct.error):  # damaged EXIF data; the pixels are not part of it
        return None
    return TURNS.get(orientation) if isinstance(orientation, int) else None


def to_rgb(image: Image.Image, factor: int = 1) -> Image.Image:
    """Convert an image of any Pillow mode to RGB, as an image viewer shows it.

    Parameters
    ----------
    image : PIL.Image.Image
        The image.
    factor : int, default=1
        Number of pixels, along both sides, that become one.

    Returns
    -------
    PIL.Image.Image
    """
    is_plain = image.mode == "RGB" and "transparency" not in image.info
    if is_plain and factor == 1:
        return image
    if is_plain:
        return image.reduce(factor)
    width, height = image.size
    grey = _grey_range(image) if _is_deep(image) else (0.0, 0.0)
    if width * height <= 4 * STRIP_PIXELS and factor == 1:
        return _convert(image, grey)
    found = Image.new("RGB", (-(-width // factor), -(-height // factor)))
    for (left, top), strip in _strips(image, factor):
        rgb = _convert(strip, grey)
        found.paste(rgb.reduce(factor) if factor > 1 else rgb, (left // factor, top // factor))
    return found


def _strips(image: Image.Image, factor: int = 1) -> Iterator[tuple[tuple[int, int], Image.Image]]:
    """Top left corners and strips of an image, cut across its longer side; corners are multiples of `factor`."""
    width, height = image.size
    step = max(1, STRIP_PIXELS // (min(width, height) * factor)) * factor
    for start in range(0, max(width, height), step):
        left, top = (start, 0) if width > height else (0, start)
        right, bottom = (min(start + step, width), height) if width > height else (width, min(start + step, height))
        yield (left, top), image.crop((left, top, right, bottom))


def _is_deep(image: Image.Image) -> bool:
    """Whether an image is grey with more than 8 bits."""
    return image.mode == "F" or image.mode.startswith("I")


def _convert(image: Image.Image, grey: tuple[float, float]) -> Image.Image:
    """Convert an image, or a strip of one whose grey values have the range `grey`, to RGB."""
    if _is_deep(image):
        return Image.fromarray(_to_eight_bits(np.asarray(image), *grey)).convert("RGB")
    if image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info:
        rgba = image.convert("RGBA")
        canvas = Image.new("RGBA", rgba.size, "white")
        return Image.alpha_composite(canvas, rgba).convert("RGB")
    return image.convert("RGB")


def _grey_range(image: Image.Image) -> tuple[float, float]:
    """Values that become black and white, as an image viewer shows them.

    Integers are read as 16-bit values unless they are larger. Floating-point values are read as 0-1 if they lie in that
    range. All others are scaled from their minimum to their maximum, because the file does not say which value is white.
    """
    low, high, is_whole = np.inf, -np.inf, True
    for _, strip in _strips(image):
        pixels = np.asarray(strip)
        values = _finite(pixels)
        low, high = min(low, float(values.min())), max(high, float(values.max()))
        is_whole = bool(np.issubdtype(pixels.dtype, np.integer))
    if is_whole and low >= 0 and high <= 65535:
        return 0.0, 65535.0
    return (0.0, 1.0) if low >= 0 and high <= 1 else (low, high)


def _to_eight_bits(pixels: NDArray[Any], low: float, high: float) -> NDArray[np.uint8]:
    """Scale grey values (H, W) of 16 bits, 32 bits or floating point from low-high to 0-255."""
    scale = 255.0 / (high - low) if high > low else 0.0
    return np.rint((_finite(pixels) - low) * scale).astype(np.uint8)


def _finite(pixels: NDArray[Any]) -> NDArray[np.float64]:
    return np.nan_to_num(pixels.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
