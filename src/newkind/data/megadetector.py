"""Detections of MegaDetector, in the layouts in use.

- An object with `images`, each with `file` and `detections` of `category` (a number as text), `conf` and `bbox`: left, top,
  width and height as fractions of the image. Written by MegaDetector's Python package and AddaxAI, and read by Timelapse.
- A list of images, each with `file` and `detections` of `category` (a name), `confidence` and `bbox`: left, top, right and
  bottom in pixels. Written by the `megadetector` command of Microsoft's package.
- An object with `annotations`, each with `img_id` and lists `bbox` (as before), `category` and `confidence`. Written by
  PyTorch-Wildlife.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from newkind.data.box_files import Box, BoxedImage, bad_file, corners_of, file_of, probability_of

__all__ = ["is_megadetector", "read_megadetector"]


def is_megadetector(content: Any) -> bool:
    """Whether a JSON value has one of the layouts."""
    if isinstance(content, list):
        return True
    if not isinstance(content, dict):
        return False
    images, annotations = content.get("images"), content.get("annotations")
    if isinstance(annotations, list) and annotations and isinstance(annotations[0], dict):
        return "img_id" in annotations[0]
    is_listed = isinstance(images, list) and bool(images) and isinstance(images[0], dict) and "file" in images[0]
    return "detection_categories" in content or is_listed


def read_megadetector(path: Path, content: Any) -> list[BoxedImage]:
    """Images and boxes of a file with one of the layouts; boxes without confidence or with other values are errors."""
    if isinstance(content, list):
        return [_image(path, i, item, {}) for i, item in enumerate(content, 1)]
    if "annotations" in content:
        names = _names(content.get("categories"))
        return [_image(path, i, _as_objects(path, i, item), names) for i, item in enumerate(content["annotations"], 1)]
    images = content.get("images")
    if not isinstance(images, list):
        raise bad_file(path, "images", "a list")
    return [
        _image(path, i, item, _names(content.get("detection_categories")), with_size=True)
        for i, item in enumerate(images, 1)
    ]


def _names(categories: Any) -> dict[str, str]:
    """Names of categories by number, from an object or a list."""
    if isinstance(categories, dict):
        return {str(key): str(name) for key, name in categories.items()}
    return {str(i): str(name) for i, name in enumerate(categories)} if isinstance(categories, list) else {}


def _image(path: Path, number: int, item: Any, names: Mapping[str, str], *, with_size: bool = False) -> BoxedImage:
    """One image with its boxes; `with_size` if boxes are fractions with width and height."""
    where = f"image {number}"
    if not isinstance(item, dict):
        raise bad_file(path, where, "an object")
    file = file_of(path, where, item.get("file"))
    detections = item.get("detections")
    if item.get("failure") or detections is None:
        return BoxedImage(file, [], problem=f"the detector could not read it ({str(item.get('failure'))[:80]})")
    if not isinstance(detections, list):
        raise bad_file(path, where, "a list of detections")
    boxes = [_box(path, f"{where}, detection {i}", i, found, names, with_size) for i, found in enumerate(detections, 1)]
    known = ("file", "detections", "failure", "max_detection_conf")
    metadata = {
        key: str(value) for key, value in item.items() if key not in known and isinstance(value, str | int | float)
    }
    return BoxedImage(file, boxes, metadata=metadata)


def _box(path: Path, where: str, number: int, found: Any, names: Mapping[str, str], with_size: bool) -> Box:
    if not isinstance(found, dict):
        raise bad_file(path, where, "an object")
    category = str(found.get("category", ""))
    return Box(
        number=number,
        corners=corners_of(path, where, found.get("bbox"), with_size=with_size),
        is_relative=with_size,
        confidence=probability_of(path, where, found.get("conf", found.get("confidence"))),
        category=names.get(category, category),
    )


def _as_objects(path: Path, number: int, item: Any) -> dict[str, Any]:
    """Image with parallel lists as one with a list of objects."""
    where = f"annotation {number}"
    lists: list[Any] = [item.get(key) for key in ("bbox", "category", "confidence")] if isinstance(item, dict) else []
    if not lists or not all(isinstance(values, list) for values in lists) or len({len(values) for values in lists}) > 1:
        raise bad_file(path, where, "img_id and equally long lists bbox, category and confidence")
    keys = ("bbox", "category", "confidence")
    return {
        "file": item.get("img_id"),
        "detections": [dict(zip(keys, values, strict=True)) for values in zip(*lists, strict=True)],
    }
