"""Data of all images for the page's scripts: names, categories, confidences, tiles and positions on the map."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

from newkind.data import printable
from newkind.report.contents import KNOWN, NEW, UNSURE, RunContents
from newkind.report.map import MAX_POINTS, ImageMap, sample_lines
from newkind.report.thumbnails import Sheets

__all__ = ["data_lines", "page_data"]

MAX_COLUMNS = 40
MAX_TEXT = 200
"""Columns of metadata, and characters of a value, that the page has."""


def data_lines(contents: RunContents, image_map: ImageMap | None) -> NDArray[np.int64]:
    """Rows of the images that the scripts know: those on the map; without a map all, or a sample of very many."""
    if image_map is not None:
        return image_map.lines
    return sample_lines(contents.category, MAX_POINTS, np.random.default_rng(0))


def page_data(
    contents: RunContents, lines: NDArray[np.int64], image_map: ImageMap | None, sheets: Sheets, anchors: list[str]
) -> dict[str, Any]:
    """Data for the scripts; arrays are little-endian, as base64.

    Parameters
    ----------
    contents : RunContents
        The run.
    lines : ndarray of int64, shape (m,)
        Rows of the images that the scripts know.
    image_map : ImageMap or None
        Positions of these images.
    sheets : Sheets
        Tiles.
    anchors : list of str, length K
        Ids of the categories' sections.

    Returns
    -------
    dict
    """
    names = [printable(contents.files[int(i)]) for i in lines]
    prefix = _common_folder(names)
    n_categories = len(contents.categories)
    index = "<u2" if n_categories < 65536 else "<u4"
    return {
        "n": len(lines),
        "lines": _base64(lines.astype("<i4")),
        "indexBytes": np.dtype(index).itemsize,
        "category": _base64(contents.category[lines].astype(index)),
        "second": _base64(contents.second[lines].astype(index)),
        "status": _base64(_kinds(contents)[lines]),
        "confidence": _percentages(contents.confidence[lines]),
        "secondConfidence": _percentages(contents.second_confidence[lines]),
        "slots": _base64(np.array([sheets.slots.get(int(i), -1) for i in lines], dtype="<i4")),
        "points": None if image_map is None else _base64((image_map.points * 65535).round().astype("<u2")),
        "prefix": prefix,
        "names": [name[len(prefix) :] for name in names],
        "categories": [
            {"name": printable(category.name), "isNew": category.status == "new", "anchor": anchor}
            for category, anchor in zip(contents.categories, anchors, strict=True)
        ],
        "metadata": _metadata(contents, lines),
        "sheets": sheets.uris,
        "side": sheets.side,
        "columns": sheets.columns,
    }


def _metadata(contents: RunContents, lines: NDArray[np.int64]) -> list[dict[str, Any]]:
    """Further columns of the data for these rows: name, different values, and the index of each row's value."""
    rows = [contents.metadata.of(contents.files[int(i)]) for i in lines]
    found = []
    for k, name in enumerate(contents.metadata.columns[:MAX_COLUMNS]):
        numbers: dict[str, int] = {}
        index = [numbers.setdefault(_shown(row[k]), len(numbers)) for row in rows]
        found.append({"name": printable(name), "values": list(numbers), "index": _base64(np.array(index, dtype="<u4"))})
    return found


def _shown(text: str) -> str:
    """Text of a cell, cut where it is very long."""
    return printable(text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}...")


def _kinds(contents: RunContents) -> NDArray[np.uint8]:
    """Status (n,) of each image, where unsure images count for the kind of their category."""
    is_new = np.array([category.status == "new" for category in contents.categories], dtype=bool)
    kind = np.where(is_new[contents.category], NEW, KNOWN)
    return np.where(contents.status == UNSURE, kind, contents.status).astype(np.uint8)


def _percentages(values: NDArray[np.float32]) -> str:
    return _base64((100 * values).round().astype(np.uint8))


def _base64(values: NDArray[Any]) -> str:
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode()


def _common_folder(names: list[str]) -> str:
    """Longest common beginning of all names that ends with a slash."""
    if not names:
        return ""
    low, high = min(names), max(names)
    length = next((i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), min(len(low), len(high)))
    return low[: low.rfind("/", 0, length) + 1]
