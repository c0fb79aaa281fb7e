"""Archives whose members are damaged, in every compression that zipfile reads."""

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import openpyxl
import pytest

from newkind.data.excel import excel_records
from newkind.data.npz import read_npz
from newkind.errors import DataError
from newkind.export.read_ecotaxa import read_ecotaxa

COMPRESSIONS = [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]


def packed(members: dict[str, bytes], compression: int) -> list[bytes]:
    """An archive, and the same with other bytes in each of its first members, which are not read with a checksum alone."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    found = []
    for info in zipfile.ZipFile(file).infolist():
        start = info.header_offset + 30 + len(info.filename)
        for at in range(start, start + min(info.compress_size, 40), 3):
            damaged = bytearray(file.getvalue())
            damaged[at] ^= 0xFF
            found.append(bytes(damaged))
    return found


def rows_of(path: Path) -> None:
    with excel_records(path) as (_, rows):
        list(rows)


def excel_members() -> dict[str, bytes]:
    book, file = openpyxl.Workbook(), io.BytesIO()
    book.worksheets[0].append(["file", "label"])
    book.save(file)
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def npz_members() -> dict[str, bytes]:
    file = io.BytesIO()
    np.savez(file, features=np.random.default_rng(0).random((20, 4)), labels=np.zeros(20))
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


READERS: dict[str, tuple[Callable[[Path], object], Callable[[], dict[str, bytes]]]] = {
    "x.zip": (read_ecotaxa, lambda: {"x.tsv": b"object_id\tobject_annotation_category\n" * 20}),
    "x.xlsx": (rows_of, excel_members),
    "x.npz": (read_npz, npz_members),
}


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("name", READERS)
def test_a_damaged_member_is_an_error_with_a_code(tmp_path: Path, name: str, compression: int) -> None:
    read, members = READERS[name]
    refused = 0
    for content in packed(members(), compression):
        (tmp_path / name).write_bytes(content)
        try:
            read(tmp_path / name)
        except DataError:
            refused += 1
    assert refused
