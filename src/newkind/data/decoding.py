"""Decoding of image files to upright RGB images.

Images are untrusted input: only the formats listed here are tried (Pillow would otherwise try all of its plug-ins), and an
image that would fill the memory is refused by the size in its header, before any pixel is decoded. Threads share a budget of
memory, and the pixels of a large image are converted in strips.
"""

from __future__ import annotations

import io
import os
import struct
import zlib
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec

from PIL import Image, UnidentifiedImageError

from newkind.data.memory_budget import MemoryBudget
from newkind.data.rgb import SIDEWAYS, to_rgb, turn_of
from newkind.errors import BrokenImage

__all__ = [
    "IMAGE_SUFFIXES",
    "MAX_PIXELS",
    "MIN_SIDE",
    "PILLOW_ERRORS",
    "broken_image",
    "decode",
    "decode_turned",
    "has_image_suffix",
    "heic_is_installed",
    "memory_needed",
    "open_checked",
    "unsupported_format",
]

IMAGE_SUFFIXES = frozenset({".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".bmp", ".tif", ".tiff", ".gif"})
UNSUPPORTED_FORMATS: Mapping[str, str] = {
    suffix: title
    for title, suffixes in {
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
HEIC_SUFFIXES = frozenset({".heic", ".heif", ".hif"})
"""Suffixes of photographs of phones, which the optional package pillow-heif decodes."""
HEIC_BRANDS = (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1")
FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "DIB", "TIFF", "GIF")
PILLOW_ERRORS = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    struct.error,
    zlib.error,
)
"""Exceptions that Pillow raises for damaged files; its documentation does not list them. MemoryError is not one of them."""
MAX_PIXELS = 178_956_970
"""Twice Pillow's threshold for a warning, where Pillow itself would refuse; 100-megapixel cameras and scanners pass."""
MAX_DECODED = 2**24
"""Pixels of a decoded image; larger ones shrink, because views need no more, and a copy of 170 megapixels has 700 MB."""
MAX_MEMORY = 2**30
"""Bytes that decoding one image may need; an image that needs more is refused."""
BUDGET = MemoryBudget(2**29)
"""Bytes that decoding may use over all threads; an image that needs more is decoded while no other one is."""
MODE_BYTES = {"1": 1, "L": 1, "P": 1, "I;16": 2, "I;16L": 2, "I;16B": 2, "I;16N": 2}
"""Bytes per pixel of Pillow's modes; the others have 4."""
DECODER_BYTES = {"WEBP": 16, "GIF": 4, "BMP": 4, "DIB": 4, "HEIF": 16}
"""Bytes per pixel of the decoder's own buffers, at most."""
ROWS_PER_STRIP = 278
"""TIFF tag."""
STRIP_BYTES = 2**25
"""What the conversion of a strip takes."""
# Pillow's own limit warns, or raises before the size is known; `open_checked` knows the size and refuses by it.
Image.MAX_IMAGE_PIXELS = None
MIN_SIDE = 4
"""Smallest side in pixels; smaller images show nothing (the smallest dataset in use has 8)."""


def broken_image(name: str, reason: str, *, code: str = "broken-image") -> BrokenImage:
    """Error for an image that cannot be used; `reason` has no full stop and is also in the error's facts."""
    return BrokenImage(f"{name}: {reason}.", code=code, name=name, reason=reason)


def unsupported_format(name: str) -> str:
    """Reason to skip an image file whose format cannot be read, by its suffix; empty for other files."""
    suffix = os.path.splitext(name)[1].lower()
    if suffix in HEIC_SUFFIXES and not heic_is_installed():
        return "HEIC needs the package pillow-heif; install it with: pip install 'newkind[heic]'"
    title = UNSUPPORTED_FORMATS.get(suffix)
    return f"{title} is not supported; convert it to JPEG or PNG" if title else ""


def has_image_suffix(name: str) -> bool:
    """Whether a file name has the suffix of an image that can be read."""
    suffix = os.path.splitext(name)[1].lower()
    return suffix in IMAGE_SUFFIXES or (suffix in HEIC_SUFFIXES and heic_is_installed())


@cache
def heic_is_installed() -> bool:
    """Whether the optional package for HEIC is there."""
    return find_spec("pillow_heif") is not None


def _formats(content: bytes) -> tuple[str, ...]:
    """Formats to try for a file; the decoder of HEIC is loaded for files that start like one."""
    if content[4:8] != b"ftyp" or content[8:12] not in HEIC_BRANDS or not heic_is_installed():
        return FORMATS
    from pillow_heif import register_heif_opener

    register_heif_opener(thumbnails=False)
    return ("HEIF",)


def open_checked(content: bytes, *, name: str) -> Image.Image:
    """Open an image: read its header and check its size, without decoding the pixels. Raises BrokenImage."""
    try:
        image = Image.open(io.BytesIO(content), formats=_formats(content))
    except UnidentifiedImageError:
        if reason := unsupported_format(name):
            raise broken_image(name, reason, code="unsupported-format") from None
        raise broken_image(name, "not an image, or an unsupported format", code="not-an-image") from None
    except MemoryError:
        raise _lacking(name) from None
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
    them; every byte of it is still read. An image of more than MAX_DECODED pixels becomes smaller by a whole number.
    """
    return decode_turned(content, name=name, shorter_side=shorter_side)[0]


def decode_turned(content: bytes, *, name: str, shorter_side: int | None = None) -> tuple[Image.Image, bool]:
    """An image as `decode` returns it, and whether turning it upright swapped width and height.

    Without enough memory it is tried again while no other thread decodes. What fails then is either broken, if the memory is
    there that any image may need, or raises MemoryError: an image must not be skipped because of what others use.
    """
    for alone in (False, True):
        try:
            with open_checked(content, name=name) as image:
                return _load_upright(image, name=name, n_bytes=len(content), shorter_side=shorter_side, alone=alone)
        except MemoryError:
            continue
    raise _lacking(name)


def _lacking(name: str) -> Exception:
    """Error for an image that could not get the memory that it asked for."""
    try:
        bytes(MAX_MEMORY)  # the pages are never touched, as those of a bytearray would be
    except MemoryError as error:
        return error
    return broken_image(name, "broken (it asks for more memory than an image of its size needs)")


def _load_upright(
    image: Image.Image, *, name: str, n_bytes: int, shorter_side: int | None, alone: bool
) -> tuple[Image.Image, bool]:
    """Pixels of an image of `open_checked`, as `decode_turned` returns them; `alone` if no other one is decoded meanwhile.

    `n_bytes` is the length of the file. The image itself is closed, unless its pixels are returned as they are.
    """
    try:
        full = image.size
        factor = max(_factor(full), min(full) // (shorter_side or min(full)))
        if factor > 1:
            image.draft("RGB", (full[0] // factor, full[1] // factor))  # only JPEG has smaller versions
        needed = memory_needed(image, n_bytes, full)
        if needed > MAX_MEMORY:
            reason = f"too large ({full[0]} x {full[1]} pixels need {needed / 1e9:.1f} GB of memory)"
            raise broken_image(name, reason, code="image-too-large")
        with BUDGET.reserved(max(needed, BUDGET.total) if alone else needed):
            image.load()
            turn = turn_of(image)
            rgb = to_rgb(image, _factor(image.size))
            if rgb is not image or turn is not None:
                rgb = rgb if turn is None else rgb.transpose(turn)
                image.close()  # here, where its memory is counted; Python may free the object much later
            return rgb, turn in SIDEWAYS
    except BrokenImage:  # which is a ValueError, as some errors of Pillow are
        raise
    except PILLOW_ERRORS as error:
        if str(error).startswith("out of memory"):  # which a decoder of Pillow returns as a number
            raise MemoryError from None
        raise broken_image(name, f"broken ({error})") from None


def _factor(size: tuple[int, int]) -> int:
    """Smallest whole number by which an image has to shrink to have at most MAX_DECODED pixels."""
    factor = 1
    while size[0] * size[1] > MAX_DECODED * factor**2:
        factor += 1
    return factor


def memory_needed(image: Image.Image, n_bytes: int, full: tuple[int, int] | None = None) -> int:
    """Estimated peak of memory in bytes while an image is decoded and converted; `full` is its size without `draft`."""
    n_pixels = image.size[0] * image.size[1]
    n_full = n_pixels if full is None else full[0] * full[1]
    decoder = DECODER_BYTES.get(image.format or "", 0) * n_pixels
    if image.format in ("JPEG", "MPO") and "progressive" in image.info:
        decoder = 6 * n_full  # coefficients of all blocks, two bytes each, of up to three channels
    elif image.format == "TIFF":  # one strip; a tiled image, or one without strips, is taken for a single one
        rows = getattr(image, "tag_v2", {}).get(ROWS_PER_STRIP)
        share = min(rows / image.size[1], 1.0) if isinstance(rows, int) and rows > 0 else 1.0
        decoder = int(8 * n_pixels * share)
    converted = 8 * n_pixels // _factor(image.size) ** 2  # RGB, and turned upright
    return n_bytes + decoder + MODE_BYTES.get(image.mode, 4) * n_pixels + converted + STRIP_BYTES
