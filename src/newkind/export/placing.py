"""Put the images of items into folders: files by link, copy or move; boxes and images in archives as new files."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path

from newkind.atomic import make_folder, replacing, write_errors
from newkind.data.boxes import BoxImages
from newkind.data.decoding import has_image_suffix
from newkind.data.items import EncodedImages
from newkind.data.names import printable
from newkind.errors import BrokenImage, ConfigError, RunError
from newkind.export.item_images import ItemImages, open_images
from newkind.pipeline.placement import Placement, place_files
from newkind.runs.run import Run
from newkind.runs.run_files import files_of

__all__ = ["item_file_name", "place_images", "write_image"]

SUFFIXES = {"image/jpeg": ".jpg", "image/png": ".png", "image/webp": ".webp", "image/gif": ".gif", "image/tiff": ".tif"}
"""Of images without a file name, by media type."""


def item_file_name(row: int, name: str, images: ItemImages) -> str:
    """Name of the file that an item becomes: `cam1/7.jpg#2` gives `7-2.png`, because a box becomes an image of its own."""
    base = name.replace("\\", "/").rsplit("/", 1)[-1]
    if images.boxes is not None:
        image, _, number = base.rpartition("#")
        return f"{image.rsplit('.', 1)[0]}-{number}.png"
    if not isinstance(images.source, EncodedImages):
        return f"{base}.png"
    return base if has_image_suffix(base) else base + SUFFIXES.get(images.facts(row).media_type, "")


def place_images(
    run: Run,
    files: Sequence[str],
    targets: Sequence[Path],
    mode: str,
    *,
    data: Path | None,
    advance: Callable[[int], None],
) -> int:
    """Put the image of each item at its target, unless it is there already. Nothing is overwritten.

    Parameters
    ----------
    run : Run
        The run.
    files : sequence of str
        Names of the items.
    targets : sequence of Path
        Where they are put; all different.
    mode : {"symlink", "copy", "move"}
        How files are placed. Boxes, and images in archives or arrays, can only be copied.
    data : Path, optional
        Folder that contains the images now.
    advance : callable
        Called with the number of images that are in place.

    Returns
    -------
    int
        Number of images that were placed.

    Raises
    ------
    RunError
        As from `place_files` and `open_images`.
    ConfigError
        With the code `only-copy` if the images are not files of their own and `mode` is not "copy".
    """
    if isinstance(run.config().get("root"), str):
        known = files_of(run, data)
        plan = [Placement(known.path(name), target) for name, target in zip(files, targets, strict=True)]
        return place_files(plan, mode, advance=advance)
    images = open_images(run, files, data)
    check_copied(images, mode)
    return sum(write_image(images, row, target, advance) for row, target in enumerate(targets))


def check_copied(images: ItemImages, mode: str) -> None:
    """Raise unless images that are not files of their own are copied."""
    if images.are_files or mode == "copy":
        return
    what = "boxes in images" if isinstance(images.source, BoxImages) else "not files of their own"
    raise ConfigError(
        f"The items of this run are {what}, so they can only be copied.",
        fix="Set `mode` to copy.",
        code="only-copy",
        setting="mode",
    )


def write_image(
    images: ItemImages, row: int, target: Path, advance: Callable[[int], None], *, as_png: bool = False
) -> bool:
    """Write one image as a file of its own; whether it was not there yet."""
    content = _content(images, row, as_png=as_png)
    with write_errors(target, fix="Then repeat the command to resume."):
        if target.is_file() and target.read_bytes() == content:
            advance(1)
            return False
        make_folder(target.parent)
    if target.exists():
        raise RunError(
            f"{target} exists already and is something else. It was not changed.", code="exists", file=target
        )
    with replacing(target, overwrite=False) as file:
        file.write(content)
    advance(1)
    return True


def _content(images: ItemImages, row: int, *, as_png: bool) -> bytes:
    """Content of an image file for an item: that of its file, or a PNG if it has none or `as_png`."""
    place = images.place[row]
    try:
        if isinstance(images.source, EncodedImages) and not as_png:
            return images.source.content(place)
        content = io.BytesIO()
        images.source.open(place).save(content, "png")
        return content.getvalue()
    except BrokenImage as problem:
        name = printable(images.source.names[place])
        raise RunError(f"{name} cannot be read ({problem.facts.get('reason', '')}).", code="missing-file") from None
