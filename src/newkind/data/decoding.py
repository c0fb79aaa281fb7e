"""Decoding of image files to upright RGB images.

Images are untrusted input: only the formats listed here are tried (Pillow would otherwise try all of its plug-ins), and an
image that would fill the memory is refused by the size in its header, before any pixel is decoded.
"""

from __future__ import annotations

import io
import os
import struct
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from newkind.errors import BrokenImage

__all__ = [
    "IMAGE_SUFFIXES",
    "MAX_PIXELS",
    "MIN_SIDE",
    "PILLOW_ERRORS",
    "broken_image",
    "decode",
    "open_checked",
    "to_rgb",
    "unsupported_format",
]

IMAGE_SUFFIXES = frozenset({".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".bmp", ".tif", ".tiff", ".gif"})
UNSUPPORTED_FORMATS: Mapping[str, str] = {
    suffix: title
    for title, suffixes in {
        "HEIC": ".heic .heif .hif",
        "AVIF": ".avif",
        "JPEG XL": ".jxl",
        "JPEG 2000": ".jp2 .j2k .jpf .jpx",
        "camera RAW": ".3fr .arw .cr2 .cr3 .dng .nef .nrw .orf .pef .raf .raw .rw2 .srw",
        "Photoshop": ".psd",
        "SVG": ".svg",
        "Netpbm": ".pbm .pgm .pnm .ppm",
        "DICOM": ".dcm",
        "OpenEXR": ".exr",
    }.items()
    for suffix in suffixes.split()
}
"""Image formats that cannot be read, by suffix."""
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
"""Exceptions that Pillow raises for damaged files; its documentation does not list them."""
MAX_PIXELS = 178_956_970
"""Twice Pillow's threshold for a warning, where Pillow itself would refuse; 100-megapixel cameras and scanners pass."""
# Pillow's own limit warns, or raises before the size is known; `open_checked` knows the size and refuses by it.
Image.MAX_IMAGE_PIXELS = None
MIN_SIDE = 4
"""Smallest side in pixels; smaller images show nothing (the smallest dataset in use has 8)."""


def broken_image(name: str, reason: str, *, code: str = "broken-image") -> BrokenImage:
    """Error for an image that cannot be used; `reason` has no full stop and is also in the error's facts."""
    return BrokenImage(f"{name}: {reason}.", code=code, name=name, reason=reason)


def unsupported_format(name: str) -> str:
    """Reason to skip an image file whose format cannot be read, by its suffix; empty for other files."""
    title = UNSUPPORTED_FORMATS.get(os.path.splitext(name)[1].lower())
    return f"{title} is not supported; convert it to JPEG or PNG" if title else ""


def open_checked(content: bytes, *, name: str) -> Image.Image:
    """Open an image: read its header and check its size, without decoding the pixels. Raises BrokenImage."""
    try:
        image = Image.open(io.BytesIO(content), formats=FORMATS)
    except UnidentifiedImageError:
        if reason := unsupported_format(name):
            raise broken_image(name, reason, code="unsupported-format") from None
        raise broken_image(name, "not an image, or an unsupported format", code="not-an-image") from None
    except PILLOW_ERRORS as error:
        raise broken_image(name, f"cannot be opened ({error})") from None
    width, height = image.size
    if width * height > MAX_PIXELS:
        reason = f"too large ({width} x {height} pixels, the limit is {MAX_PIXELS // 10**6} megapixels)"
        raise broken_image(name, reason, code="image-too-large")
    if min(width, height) < MIN_SIDE:
        reason = f"too small ({width} x {height} pixels, at least {MIN_SIDE} x {MIN_SIDE} are needed)"
        raise broken_image(name, reason, code="image-too-small")
    return image


def decode(content: bytes, *, name: str, shorter_side: int | None = None) -> Image.Image:
    """Decode the first frame of an image, upright and in RGB, transparent parts on white. Raises BrokenImage.

    If `shorter_side` pixels are enough, a JPEG file is decoded at the smallest of 1/1, 1/2, 1/4 and 1/8 of its size that has
    them.
    """
    with open_checked(content, name=name) as image:
        try:
            if shorter_side is not None and (factor := min(image.size) // shorter_side) > 1:
                image.draft("RGB", (image.size[0] // factor, image.size[1] // factor))
            image.load()
            return to_rgb(ImageOps.exif_transpose(image))
        except PILLOW_ERRORS as error:
            raise broken_image(name, f"broken ({error})") from None


def to_rgb(image: Image.Image) -> Image.Image:
    """Convert an image of any Pillow mode to RGB, as an image viewer shows it."""
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
    """Scale grey values (H, W) of 16 bits, 32 bits or floating point to 0-255, as an image viewer shows them.

    Integers are read as 16-bit values unless they are larger. Floating-point values are read as 0-1 if they lie in that
    range. All others are scaled from their minimum to their maximum, because the file does not say which value is white.
    """
    values = np.nan_to_num(pixels.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    low, high = float(values.min()), float(values.max())
    if np.issubdtype(pixels.dtype, np.integer) and low >= 0 and high <= 65535:
        low, high = 0.0, 65535.0
    elif low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    scale = 255.0 / (high - low) if high > low else 0.0
    return np.rint((values - low) * scale).astype(np.uint8)
