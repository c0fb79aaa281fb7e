"""Tables of images: what is read, skipped and refused."""

import json
import os
from pathlib import Path

import pytest

from error_codes import raises
from newkind.data import open_data
from newkind.data.tables import read_table
from newkind.errors import DataError


@pytest.fixture
def images(tmp_path: Path, make_image) -> Path:
    for i in range(4):
        make_image(tmp_path / "img" / f"{i}.jpg", seed=i)
    return tmp_path


def write(folder: Path, text: str, name: str = "metadata.csv", encoding: str = "utf-8") -> Path:
    path = folder / name
    path.write_text(text, encoding=encoding)
    return path


def test_csv(images: Path) -> None:
    write(images, 'file_name,label,truth\nimg/0.jpg,"bee, wild",\nimg/1.jpg,,wasp\nimg/2.jpg,,"bee, wild"\n')
    collection = open_data(images)  # the folder: metadata.csv is found in it
    assert collection.catalog.class_names == ("bee, wild",)
    assert collection.catalog.labels.tolist() == [0, -1, -1]
    assert collection.truth is not None
    assert collection.truth.class_names == ("bee, wild", "wasp")
    assert collection.truth.labels.tolist() == [0, 1, 0]
    assert list(collection.catalog.items.names) == ["img/0.jpg", "img/1.jpg", "img/2.jpg"]


@pytest.mark.parametrize("separator", [";", "\t"])
def test_spreadsheet_dialects(images: Path, separator: str) -> None:
    text = "file_name,label\r\nimg/0.jpg,a\r\nimg\\1.jpg,\r\n".replace(",", separator)
    path = write(images, text, "table.csv", encoding="utf-8-sig")
    catalog = read_table(path).catalog
    assert catalog.labels.tolist() == [0, -1]
    assert list(catalog.items.names) == ["img/0.jpg", "img/1.jpg"]


def test_json_lines(images: Path) -> None:
    rows = [
        {"file_name": "img/0.jpg", "label": "a"},
        {"file_name": "img/1.jpg", "label": None},
        {"file_name": "img/2.jpg"},
    ]
    write(images, "\n".join(map(json.dumps, rows)) + "\n\n", "metadata.jsonl")
    assert open_data(images).catalog.labels.tolist() == [0, -1, -1]


def test_absolute_paths(images: Path, tmp_path_factory) -> None:
    elsewhere = tmp_path_factory.mktemp("table")
    path = write(elsewhere, f"file_name,label\n{images}/img/0.jpg,a\n{images}/img/9.jpg,a\n", "t.csv")
    collection = read_table(path)
    assert collection.catalog.items.open(0).size == (24, 16)
    assert [item.name for item in collection.skipped] == [f"{images}/img/9.jpg"]


def test_missing_and_repeated_files_are_skipped(images: Path) -> None:
    path = write(images, "file_name,label\nimg/0.jpg,a\nimg/7.jpg,a\nimg/0.jpg,a\n")
    collection = read_table(path)
    assert [(item.name, item.code) for item in collection.skipped] == [
        ("img/7.jpg", "missing-file"),
        ("img/0.jpg", "duplicate"),
    ]
    assert len(collection.catalog) == 1


@pytest.mark.parametrize(
    ("text", "code", "facts"),
    [
        ("file_name,label\nimg/0.jpg,a\nimg/0.jpg,b\n", "label-conflict", {"lines": (2, 3)}),
        ("file_name,label\nimg/8.jpg,a\n", "no-images", {"n_skipped": 1}),
        ("file_name,label\n", "empty-table", {}),
        ("", "missing-column", {"columns": []}),
        ("name,class\nimg/0.jpg,a\n", "missing-column", {"columns": ["name", "class"]}),
        ("file_name,colour\nimg/0.jpg,a\n", "missing-column", {"columns": ["file_name", "colour"]}),
        ("path,image,label\nimg/0.jpg,img/0.jpg,a\n", "ambiguous-column", {"columns": ["path", "image"]}),
        ("file_name,species,category\nimg/0.jpg,a,b\n", "ambiguous-column", {"columns": ["species", "category"]}),
        ("file_name,label,label\nimg/0.jpg,a,b\n", "ambiguous-column", {"columns": ["label", "label"]}),
        ("file_name,label\nimg/0.jpg,a,b\n", "cell-count", {"line": 2}),
        ('file_name,label\n"img/0.jpg,a\n', "not-csv", {}),
        pytest.param("file_name,label\nimg/0.jpg," + "a" * 140_000, "not-csv", {"line": 2}, id="long"),
        ("file_name,label,truth\nimg/0.jpg,,a\nimg/0.jpg,,b\n", "label-conflict", {"lines": (2, 3)}),
    ],
)
def test_bad_tables(images: Path, text: str, code: str, facts: dict[str, object]) -> None:
    with raises(DataError, code) as caught:
        read_table(write(images, text))
    assert facts.items() <= caught.value.facts.items()


@pytest.mark.parametrize(
    "line",
    [
        "not json",
        "[1]",
        "null",
        '"file_name"',
        '{"file_name": {"a": 1}}',
        '{"file_name": null}',
        pytest.param("[" * 100_000, id="deep"),
    ],
)
def test_bad_json_lines(images: Path, line: str) -> None:
    with raises(DataError, "not-a-row") as caught:
        read_table(write(images, line + "\n", "t.jsonl"))
    assert caught.value.facts["line"] == 1


@pytest.mark.parametrize("column", ["label", "truth"])
@pytest.mark.parametrize("value", ["true", "Infinity", "1e999", "0.5", "-7", '["a"]', '{"a": 1}', "9" * 50])
def test_what_is_no_label_in_json(images: Path, column: str, value: str) -> None:
    text = f'{{"file_name": "img/0.jpg"}}\n{{"file_name": "img/1.jpg", "{column}": {value}}}\n'
    with raises(DataError, "not-a-label") as caught:
        read_table(write(images, text, "t.jsonl"))
    assert caught.value.facts == {"path": str(images / "t.jsonl"), "line": 2}


def test_numbers_in_json(images: Path) -> None:
    values = ["1", "1.0", '"1"', "-1"]  # pandas writes 1.0 where a column also has empty cells
    rows = [f'{{"file_name": "img/{i}.jpg", "label": {value}}}' for i, value in enumerate(values)]
    catalog = read_table(write(images, "\n".join(rows), "t.jsonl")).catalog
    assert (catalog.class_names, catalog.labels.tolist()) == (("1",), [0, 0, 0, -1])


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("name", ["t.csv", "t.jsonl"])
def test_utf16_is_named(images: Path, encoding: str, name: str) -> None:
    with raises(DataError, "not-utf8"):
        read_table(write(images, "file_name,label\nimg/0.jpg,a\n", name, encoding=encoding))


def test_what_is_not_a_regular_file_is_skipped(images: Path) -> None:
    os.mkfifo(images / "pipe.jpg")
    (images / "zero.jpg").symlink_to("/dev/zero")
    path = write(images, "file_name,label\nimg/0.jpg,a\npipe.jpg,a\nzero.jpg,a\nimg,a\n")
    collection = read_table(path)
    assert list(collection.catalog.items.names) == ["img/0.jpg"]
    assert {item.code for item in collection.skipped} == {"not-a-file"}


def test_names_that_no_file_can_have_are_skipped(images: Path) -> None:
    names = ["a\0b.jpg", "a\0b/0.jpg", "\ud800.jpg", "\ud800/0.jpg", "y" * 5000 + "/0.jpg", "img/0.jpg"]
    path = write(images, "\n".join(json.dumps({"file_name": name, "label": "\ud800"}) for name in names), "t.jsonl")
    collection = read_table(path)
    assert [item.name for item in collection.skipped] == names[:-1]
    assert collection.catalog.class_names == ("\ud800",)


@pytest.mark.parametrize("row", ["1.png,B\xe4r,A", "1.png,oak,B\xe4renh\xf6hle"])
def test_texts_that_are_not_utf8_are_named(images: Path, row: str) -> None:
    """As Excel for Windows saves CSV; otherwise results would have bytes that other programs cannot read."""
    path = images / "table.csv"
    path.write_bytes(f"file_name,label,site\n{row}\n".encode("cp1252"))
    with raises(DataError, "not-utf8"):
        read_table(path)
