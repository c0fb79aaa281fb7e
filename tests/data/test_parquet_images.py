"""Images inside Parquet files: Hugging Face's objects and plain bytes, labels and metadata; bad files."""

import io
import json
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from error_codes import raises
from newkind.data import ParquetImages, inspect_collection, open_data, read_parquet_images
from newkind.data import parquet_images as module
from newkind.errors import BrokenImage, DataError, NewkindError


def picture(seed: int = 0) -> bytes:
    content = io.BytesIO()
    Image.new("RGB", (12, 8), (seed % 256, 0, 0)).save(content, "PNG")
    return content.getvalue()


def objects(*seeds: int) -> list[dict[str, Any]]:
    return [{"bytes": picture(seed), "path": f"a/{seed}.png"} for seed in seeds]


def write(path: Path, columns: dict[str, Any], *, features: dict[str, Any] | None = None, group: int = 2) -> Path:
    table = pa.table(columns)
    if features:
        about = json.dumps({"info": {"features": features}})
        table = table.replace_schema_metadata({"huggingface": about})
    pq.write_table(table, path, row_group_size=group)
    return path


def test_a_file_of_hugging_face(tmp_path: Path) -> None:
    """Labels are numbers of classes whose names are in the metadata; images are read from several row groups."""
    features = {"image": {"_type": "Image"}, "label": {"names": ["wasp", "bee"], "_type": "ClassLabel"}}
    columns = {"image": objects(*range(5)), "label": [1, 0, -1, 1, None], "site": list("ABCDE"), "truth": list("vwxyz")}
    columns["truth"] = ["bee", "wasp", "fly", "bee", "fly"]
    collection = open_data(write(tmp_path / "x.parquet", columns, features=features), group_column="site")
    catalog = collection.catalog
    assert isinstance(catalog.items, ParquetImages)
    assert list(catalog.items.names) == [f"a/{i}.png" for i in range(5)]
    assert catalog.class_names == ("bee", "wasp")
    assert catalog.labels.tolist() == [0, 1, -1, 0, -1]
    assert collection.truth is not None
    assert collection.truth.class_names == ("bee", "wasp", "fly")
    assert list(collection.metadata["site"]) == list("ABCDE")
    assert collection.group_column == "site"
    assert [catalog.items.open(i).getpixel((0, 0)) for i in (4, 0, 3)] == [(4, 0, 0), (0, 0, 0), (3, 0, 0)]
    assert inspect_collection(collection).formats == {"PNG": 5}
    copied = pickle.loads(pickle.dumps(catalog.items))
    assert copied.content(2) == picture(2)
    again = open_data(collection.location, **collection.reading)
    assert again.catalog.items.names == catalog.items.names


def test_plain_bytes_and_names(tmp_path: Path) -> None:
    """Columns named as images usually are; names from a column, without a way out of a folder, or else the row."""
    content = [picture(1), picture(2)]
    some = open_data(write(tmp_path / "a.parquet", {"png": content, "file_name": ["../x/1.png", "/y/2.png"]})).catalog
    assert list(some.items.names) == ["x/1.png", "y/2.png"]
    same = open_data(
        write(tmp_path / "b.parquet", {"image": content, "path": ["i.png", "i.png"], "species": ["a", "b"]})
    )
    assert list(same.catalog.items.names) == ["0000000", "0000001"]
    assert same.catalog.class_names == ("a", "b")
    other = write(tmp_path / "c.parquet", {"image": content, "raw": [b"x", b"y"]})
    assert isinstance(open_data(other).catalog.items, ParquetImages)
    with raises(BrokenImage, "not-an-image"):
        open_data(other, file_column="raw").catalog.items.open(0)


def test_a_folder_of_files(tmp_path: Path) -> None:
    """Files may lack columns, as a test split without labels does."""
    write(tmp_path / "test-00000.parquet", {"image": objects(7)})
    write(tmp_path / "train-00000.parquet", {"image": objects(1, 2), "label": ["bee", None]})
    write(tmp_path / "train-00001.parquet", {"image": objects(1), "label": ["wasp"], "site": [3]})
    (tmp_path / "README.md").touch()
    catalog = (collection := open_data(tmp_path)).catalog
    stems = ["test-00000/a/7.png", "train-00000/a/1.png", "train-00000/a/2.png", "train-00001/a/1.png"]
    assert list(catalog.items.names) == stems
    assert catalog.labels.tolist() == [-1, 0, -1, 1]
    assert list(collection.metadata["site"]) == ["", "", "", "3"]
    assert [catalog.items.content(i) for i in range(4)] == [picture(i) for i in (7, 1, 2, 1)]
    some = open_data(f"{tmp_path}/train-{{00000..00001}}.parquet")
    assert list(some.catalog.items.names) == stems[1:]
    (tmp_path / "bee").mkdir()
    assert len(open_data(tmp_path).catalog) == 4  # a folder without images
    Image.new("RGB", (8, 8)).save(tmp_path / "bee" / "1.png")
    assert list(open_data(tmp_path).catalog.items.names) == ["bee/1.png"]


def test_files_of_the_same_name_in_several_folders(tmp_path: Path) -> None:
    for i in range(2):
        (tmp_path / f"day{i}").mkdir()
        write(tmp_path / f"day{i}" / "x.parquet", {"image": objects(1)})
    items = open_data(f"{tmp_path}/day{{0..1}}/x.parquet").catalog.items
    assert list(items.names) == ["day0/x.parquet/a/1.png", "day1/x.parquet/a/1.png"]
    with raises(DataError, "too-many-files"):
        open_data(f"{tmp_path}/day{{0..999}}/{{0..999}}.parquet")


@pytest.mark.parametrize("name", ["image", "label", "site"])
def test_columns_of_the_same_name_are_refused(tmp_path: Path, name: str) -> None:
    cells = {"image": [picture(1)], "label": ["bee"], "site": ["a"]}
    table = pa.Table.from_arrays([pa.array(each) for each in (*cells.values(), cells[name])], [*cells, name])
    pq.write_table(table, tmp_path / "x.parquet")
    with raises(DataError, "unreadable"):
        open_data(tmp_path / "x.parquet")


def test_tables_of_file_names_stay_tables(tmp_path: Path) -> None:
    (tmp_path / "1.png").write_bytes(picture())
    path = write(tmp_path / "x.parquet", {"file_name": ["1.png"], "label": [1], "digest": [b"1"], "image": objects(1)})
    assert open_data(path, file_column="file_name").catalog.items.names[0] == "1.png"
    assert not isinstance(open_data(path, file_column="file_name").catalog.items, ParquetImages)


def test_few_row_groups_are_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CACHED_BYTES", 0)
    items = open_data(write(tmp_path / "x.parquet", {"image": objects(*range(9))}, group=1)).catalog.items
    assert isinstance(items, ParquetImages)
    for i in (*range(9), 0):
        assert items.content(i) == picture(i)
        assert len(items._cached._found) <= 2


def test_bad_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = write(tmp_path / "whole.parquet", {"image": objects(1, 2, 3)}).read_bytes()
    for number, content in enumerate([b"", b"x" * 2000, whole[:-9], whole[:200]]):
        (tmp_path / f"broken{number}.parquet").write_bytes(content)
        with raises(DataError, "unreadable"):
            open_data(tmp_path / f"broken{number}.parquet")
    cases: dict[str, tuple[str, dict[str, Any]]] = {
        "missing-column": ("1", {"label": ["a"]}),
        "ambiguous-column": ("2", {"image": objects(1), "mask": objects(1)}),
        "not-a-label": ("3", {"image": objects(1), "label": [[1]]}),
        "no-images": ("4", {"image": pa.array([], pa.binary())}),
    }
    for code, (name, columns) in cases.items():
        with raises(DataError, code):
            read_parquet_images([write(tmp_path / f"{name}.parquet", columns)])
    folder = tmp_path / "folder"
    folder.mkdir()
    write(folder / "1.parquet", {"image": objects(1)})
    write(folder / "2.parquet", {"label": ["a"]})
    with raises(DataError, "missing-column"):
        open_data(folder)
    monkeypatch.setattr(module, "MAX_GROUP", 100)
    with raises(DataError, "row-group-too-large"):
        open_data(tmp_path / "whole.parquet")


def test_rows_without_an_image_and_files_that_change(tmp_path: Path) -> None:
    rows = [{"bytes": None, "path": "1.png"}, None, {"bytes": b"no picture", "path": "3.png"}, *objects(4)]
    path = write(tmp_path / "x.parquet", {"image": rows})
    items = open_data(path).catalog.items
    for i, code in enumerate(["missing-file", "missing-file", "not-an-image"]):
        with raises(BrokenImage, code):
            items.open(i)
    assert items.content(3) == picture(4)
    items = open_data(path).catalog.items
    write(path, {"image": objects(1)})
    with raises(BrokenImage, "unreadable"):
        items.content(3)
    path.unlink()
    with raises(BrokenImage, "unreadable"):
        items.content(0)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, 1500), change=st.binary(min_size=1, max_size=40))
def test_a_damaged_file_gives_a_collection_or_a_clear_error(tmp_path: Path, at: int, change: bytes) -> None:
    whole = tmp_path / "whole.parquet"
    if not whole.exists():
        features = {"label": {"names": ["wasp", "bee"], "_type": "ClassLabel"}}
        write(whole, {"image": objects(1, 2, 3), "label": [0, 1, None]}, features=features)
    content, path = whole.read_bytes(), tmp_path / "damaged.parquet"
    path.write_bytes(content[: -at - len(change)] + change + content[len(content) - at :])
    try:
        items = open_data(path).catalog.items
    except NewkindError:
        return
    assert isinstance(items, ParquetImages)
    for i in range(len(items)):
        try:
            items.open(i)
        except BrokenImage:
            continue
