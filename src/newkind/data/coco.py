"""Images, boxes and classes of COCO files, COCO Camera Traps included."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

from newkind.data.box_files import Box, BoxedImage, bad_file, corners_of, file_of, probability_of
from newkind.data.cells import cell_text

__all__ = ["read_coco"]

IMAGE_KEYS = ("id", "file_name", "width", "height")
ANNOTATION_KEYS = (
    "id", "image_id", "category_id", "bbox", "segmentation", "area", "iscrowd", "keypoints", "num_keypoints", "score",
)  # fmt: skip


def read_coco(path: Path, content: Any) -> list[BoxedImage]:
    """Images of a COCO file, in its order, with boxes and with classes of whole images.

    Boxes of images whose width and height are given become fractions, so that copies of another size can be used.
    Annotations of crowds are left out.
    """
    if not isinstance(content, dict) or not isinstance(content.get("images"), list):
        raise bad_file(path, "", "detections of MegaDetector, or a COCO object with images and annotations")
    images = _images(path, content["images"])
    names = _categories(path, content.get("categories") or [])
    by_image: defaultdict[str, list[tuple[str, dict[str, Any], str]]] = defaultdict(list)
    annotations = content.get("annotations") or []
    if not isinstance(annotations, list):
        raise bad_file(path, "annotations", "a list")
    for number, item in enumerate(annotations, 1):
        where = f"annotation {number}"
        if not isinstance(item, dict) or str(item.get("image_id")) not in images:
            raise bad_file(path, where, "the image_id of one of the images", code="unknown-image")
        category = item.get("category_id")
        if category is not None and str(category) not in names:
            raise bad_file(path, where, "the category_id of one of the categories", code="unknown-category")
        if not item.get("iscrowd"):
            by_image[str(item["image_id"])].append((where, item, names.get(str(category), "")))
    return [_image(path, i, record, by_image[key]) for i, (key, record) in enumerate(images.items(), 1)]


def _images(path: Path, records: list[Any]) -> dict[str, dict[str, Any]]:
    """Records of images by id."""
    found: dict[str, dict[str, Any]] = {}
    for number, record in enumerate(records, 1):
        if not isinstance(record, dict) or not isinstance(record.get("id"), str | int):
            raise bad_file(path, f"image {number}", "an object with id and file_name")
        if str(record["id"]) in found:
            raise bad_file(path, f"image {number}", f"an id of its own, got {str(record['id'])[:40]} again")
        found[str(record["id"])] = record
    return found


def _categories(path: Path, records: Any) -> dict[str, str]:
    """Names of categories by id."""
    if not isinstance(records, list) or not all(isinstance(r, dict) and "id" in r and "name" in r for r in records):
        raise bad_file(path, "categories", "a list of objects with id and name")
    return {str(record["id"]): str(record["name"]) for record in records}


def _image(
    path: Path, number: int, record: dict[str, Any], annotations: list[tuple[str, dict[str, Any], str]]
) -> BoxedImage:
    """One image with its boxes, and with the classes of annotations without a box."""
    file = file_of(path, f"image {number}", record.get("file_name"))
    size = (record.get("width"), record.get("height"))
    boxes: list[Box] = []
    classes: dict[str, None] = {}
    for where, item, name in annotations:
        if not item.get("bbox"):
            classes[name] = None
            continue
        corners = corners_of(path, where, item["bbox"], with_size=True)
        is_relative = all(isinstance(side, int | float) and not isinstance(side, bool) and side > 0 for side in size)
        if is_relative:
            width, height = float(size[0] or 1), float(size[1] or 1)
            corners = (corners[0] / width, corners[1] / height, corners[2] / width, corners[3] / height)
        score = item.get("score", item.get("confidence"))
        boxes.append(
            Box(
                number=len(boxes) + 1,
                corners=corners,
                is_relative=is_relative,
                confidence=None if score is None else probability_of(path, where, score),
                category=name,
                metadata=_scalars(item, ANNOTATION_KEYS) | {"annotation_id": cell_text(item.get("id"))},
            )
        )
    return BoxedImage(file, boxes, classes=tuple(classes), metadata=_scalars(record, IMAGE_KEYS))


def _scalars(record: dict[str, Any], without: tuple[str, ...]) -> dict[str, str]:
    """Texts and numbers of a record."""
    return {
        key: cell_text(value)
        for key, value in record.items()
        if key not in without and (value is None or isinstance(value, str | int | float))
    }
