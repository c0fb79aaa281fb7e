"""Images of a run as they may be sent: only its own images, only from its data folder, only as images."""

from __future__ import annotations

import hashlib
import io
import os
from dataclasses import dataclass, field
from pathlib import Path

from PIL import Image

from newkind.data import FileImages, Images
from newkind.data.decoding import PILLOW_ERRORS, broken_image, decode, open_checked
from newkind.errors import BrokenImage
from newkind.report.images import RunImages
from newkind.report.thumbnails import KIND, small_image

__all__ = ["Original", "Originals"]

TYPES = {"JPEG": "image/jpeg", "PNG": "image/png", "WEBP": "image/webp", "GIF": "image/gif"}
"""Formats that every browser shows; others are converted."""
THUMBNAIL_QUALITY = 70


@dataclass(frozen=True)
class Original:
    """An image to send, with its content type."""

    content: bytes
    media_type: str


@dataclass(frozen=True)
class Originals:
    """Images of a run by row.

    Parameters
    ----------
    images : RunImages
        The images of the run.
    allow_outside : bool, default=False
        Whether files outside the data folder may be read, which absolute names and symbolic links can lead to.
    added : tuple of Path, default=()
        Further folders of a run that was continued, whose images may be read, too.
    """

    images: RunImages
    allow_outside: bool = False
    added: tuple[Path, ...] = ()
    _folders: tuple[str, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        source = self.images.images
        if isinstance(source, FileImages):
            object.__setattr__(self, "_folders", tuple(map(os.path.realpath, (source.root, *self.added))))

    def key(self, line: int) -> str:
        """Identify the present content of an image cheaply: by path, size and time of a file, otherwise by its bytes."""
        source, place = self._find(line)
        digest = hashlib.blake2b(digest_size=16)
        if isinstance(source, FileImages):
            path = self._checked_path(source, place)
            try:
                about = os.stat(path)
            except (OSError, ValueError):
                raise broken_image(source.names[place], "not found", code="missing-file") from None
            digest.update(os.fsencode(path) + f"|{about.st_size}|{about.st_mtime_ns}".encode())
        else:
            digest.update(source.content(place))
        return digest.hexdigest()

    def thumbnail(self, line: int, side: int) -> Original:
        """Small copy of an image, without metadata. Raises BrokenImage."""
        source, place = self._find(line)
        if isinstance(source, FileImages):
            self._checked_path(source, place)
        content = io.BytesIO()
        small_image(source, place, side).save(content, KIND, quality=THUMBNAIL_QUALITY, method=2)
        return Original(content.getvalue(), f"image/{KIND}")

    def full(self, line: int) -> Original:
        """Image in its full size: the file itself if browsers can show it, otherwise a PNG. Raises BrokenImage."""
        source, place = self._find(line)
        if not isinstance(source, FileImages):
            return Original(_png(source.open(place)), "image/png")
        self._checked_path(source, place)
        name, content = source.names[place], source.content(place)
        with open_checked(content, name=name) as image:
            if image.format in TYPES:
                return Original(content, TYPES[image.format])
        return Original(_png(decode(content, name=name)), "image/png")

    def facts(self, line: int) -> dict[str, str]:
        """Size in pixels and bytes, format and camera data of an image, for the reader. Empty if it cannot be read."""
        try:
            source, place = self._find(line)
            if not isinstance(source, FileImages):
                width, height = source.open(place).size
                return {"Size": f"{width} x {height} pixels"}
            self._checked_path(source, place)
            content = source.content(place)
            with open_checked(content, name=source.names[place]) as image:
                found = {
                    "Size": f"{image.width} x {image.height} pixels, {len(content) / 1000:,.0f} KB",
                    "Format": image.format or "?",
                }
                return found | _camera_facts(image)
        except BrokenImage:
            return {}

    def problem(self, line: int) -> str:
        """Reason why an image cannot be shown; empty if it can."""
        try:
            self.key(line)
        except BrokenImage as error:
            return str(error.facts.get("reason", ""))
        return ""

    def _find(self, line: int) -> tuple[Images, int]:
        source, place = self.images.images, int(self.images.place[line])
        if source is None or place < 0:
            raise broken_image(f"Image {line}", "not found", code="missing-file")
        return source, place

    def _checked_path(self, source: FileImages, place: int) -> Path:
        """Real path of a file, which must lie in the data folder, or in one that was added."""
        path = os.path.realpath(source.path(place))
        is_inside = any(os.path.commonpath([path, folder]) == folder for folder in self._folders)
        if not self.allow_outside and not is_inside:
            raise broken_image(source.names[place], "outside the data folder", code="outside-data")
        return Path(path)


def _png(image: Image.Image) -> bytes:
    content = io.BytesIO()
    image.save(content, "png", compress_level=1)
    return content.getvalue()


def _camera_facts(image: Image.Image) -> dict[str, str]:
    """Camera and time from the EXIF data, if they are readable."""
    try:
        exif = image.getexif()
        camera = " ".join(str(exif.get(tag, "")).strip(" \0") for tag in (0x010F, 0x0110)).strip()
        taken = str(exif.get(0x0132, "")).strip(" \0")
    except PILLOW_ERRORS:
        return {}
    return {name: value[:200] for name, value in {"Camera": camera, "Taken": taken}.items() if value}
