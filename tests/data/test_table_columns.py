"""Tables as people have them: names of columns, words for unlabelled, metadata, groups; Excel and Parquet."""

import datetime
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import openpyxl
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from error_codes import raises
from newkind.data import Collection, encode_labels, open_data, read_table, read_truth
from newkind.data.excel import excel_records
from newkind.errors import ConfigError, DataError, NewkindError


@pytest.fixture
def images(tmp_path: Path, make_image) -> Path:
    for i in range(4):
        make_image(tmp_path / "img" / f"{i}.jpg", seed=i)
    return tmp_path


HEADER = ["filename", "Species", "site", "taken", "n"]
ROWS: list[list[object]] = [
    ["img/0.jpg", "oak", "A", datetime.datetime(2024, 5, 1, 12, 30), 3],
    ["img/1.jpg", "beech", "A", None, None],
    ["img/2.jpg", "NA", "B, north", None, 1],
    ["img/3.jpg", None, None, None, 2],
]


def as_csv(path: Path, header: list[str], rows: list[list[object]]) -> None:
    pd.DataFrame(rows, columns=header).to_csv(path, index=False)


def as_json_lines(path: Path, header: list[str], rows: list[list[object]]) -> None:
    path.write_text(pd.DataFrame(rows, columns=header).to_json(orient="records", lines=True, date_format="iso"))


def as_excel(path: Path, header: list[str], rows: list[list[object]]) -> None:
    book = openpyxl.Workbook()
    for row in [header, *rows]:
        book.active.append(row)
    book.create_sheet("other").append(["nothing", "here"])
    book.save(path)


def as_parquet(path: Path, header: list[str], rows: list[list[object]]) -> None:
    pd.DataFrame(rows, columns=header).to_parquet(path)


WRITERS: dict[str, Callable[[Path, list[str], list[list[object]]], None]] = {
    ".csv": as_csv,
    ".jsonl": as_json_lines,
    ".xlsx": as_excel,
    ".parquet": as_parquet,
}
every_kind = pytest.mark.parametrize("suffix", WRITERS)


@every_kind
def test_the_same_table_in_every_format(images: Path, suffix: str) -> None:
    path = images / f"photos{suffix}"
    WRITERS[suffix](path, HEADER, ROWS)
    collection = open_data(path)
    assert list(collection.catalog.items.names) == [f"img/{i}.jpg" for i in range(4)]
    assert collection.catalog.class_names == ("beech", "oak")
    assert collection.catalog.labels.tolist() == [1, 0, -1, -1]
    assert list(collection.metadata) == ["site", "taken", "n"]
    assert list(collection.metadata["site"]) == ["A", "A", "B, north", ""]
    assert collection.metadata["taken"][0].startswith("2024-05-01")
    assert [float(n or 0) for n in collection.metadata["n"]] == [3, 0, 1, 2]
    said = " ".join(collection.notes)
    for mentioned in ("filename", "Species", "file_column", "label_column", "'NA'"):
        assert mentioned in said


@every_kind
def test_columns_by_option(images: Path, suffix: str) -> None:
    path = images / f"t{suffix}"
    rows: list[list[object]] = [
        [f"img/{i}.jpg", name, f"b{i // 2}", t] for i, (name, t) in enumerate(zip("aab ", "aabc", strict=True))
    ]
    WRITERS[suffix](path, ["where", "what", "burst", "really"], rows)
    options = {"file_column": "where", "label_column": "WHAT", "truth_column": "really", "group_column": "burst"}
    collection = open_data(path, **options)
    assert collection.catalog.labels.tolist() == [0, 0, 1, -1]
    assert collection.catalog.groups is not None
    assert collection.catalog.groups.tolist() == [0, 0, 1, 1]
    assert collection.truth is not None
    assert collection.truth.class_names == ("a", "b", "c")
    assert list(collection.metadata) == ["burst"]
    assert not collection.notes
    assert collection.reading == options
    with raises(DataError, "missing-column"):
        open_data(path, **(options | {"group_column": "specimen"}))


def test_a_table_elsewhere(images: Path, tmp_path_factory) -> None:
    path = tmp_path_factory.mktemp("tables") / "t.csv"
    path.write_text("file_name,label\n0.jpg,a\n1.jpg,\n")
    assert len(open_data(path, image_folder=images / "img").catalog) == 2
    with raises(DataError, "no-images"):
        open_data(path)


def test_timelapse_has_the_folder_in_a_column_of_its_own(images: Path) -> None:
    path = images / "t.csv"
    path.write_text("RootFolder,File,RelativePath,Species\nx,0.jpg,img,fox\nx,1.jpg,img,\n")
    assert list(read_table(path).catalog.items.names) == ["img/0.jpg", "img/1.jpg"]


def test_class_beside_other_ranks_is_a_rank(images: Path) -> None:
    path = images / "t.csv"
    path.write_text("path,class,order,family,species\nimg/0.jpg,Aves,x,y,crow\nimg/1.jpg,Aves,x,y,\n")
    collection = read_table(path)
    assert collection.catalog.class_names == ("crow",)
    assert list(collection.metadata["class"]) == ["Aves", "Aves"]


@pytest.mark.parametrize(
    "word", ["", "NA", "na", "NaN", "nan", "None", "NONE", "unknown", "Unlabelled", "UNLABELED", "null", " NA "]
)
def test_words_for_unlabelled(images: Path, word: str) -> None:
    path = images / "t.csv"
    path.write_text(f"file_name,label,truth\nimg/0.jpg,a,\nimg/1.jpg,{word},{word}\n")
    collection = read_table(path)
    assert collection.catalog.class_names == ("a",)
    assert collection.catalog.labels.tolist() == [0, -1]
    assert collection.truth is not None
    assert collection.truth.labels.tolist() == [0, -1]
    assert encode_labels(["a", word]).indices.tolist() == [0, -1]


def test_missing_values_of_pandas_are_unlabelled() -> None:
    assert encode_labels([pd.NA, pd.NaT, np.nan, "a"]).indices.tolist() == [-1, -1, -1, 0]


def test_repeated_and_empty_names_of_other_columns(images: Path) -> None:
    path = images / "t.csv"
    path.write_text("file_name,label,x,x,\nimg/0.jpg,a,1,2,3\n")
    assert {name: list(column) for name, column in read_table(path).metadata.items()} == {
        "x": ["1"],
        "x_2": ["2"],
        "column_5": ["3"],
    }


def test_groups_with_two_labels_are_an_error(images: Path) -> None:
    path = images / "t.csv"
    path.write_text("file_name,label,burst\nimg/0.jpg,a,1\nimg/1.jpg,b,1\nimg/2.jpg,a,NA\nimg/3.jpg,b,NA\n")
    with raises(DataError, "group-conflict") as caught:
        read_table(path, group_column="burst")
    assert caught.value.facts["group"] == "1"
    assert caught.value.facts["labels"] == ["a", "b"]


@pytest.mark.parametrize(
    ("header", "rows", "code"),
    [
        (["filename", "colour"], [["img/0.jpg", "a"]], "missing-column"),
        (["picture", "photo", "label"], [["img/0.jpg", "img/0.jpg", "a"]], "ambiguous-column"),
        (["filename", "label"], [["img/0.jpg", True]], "not-a-label"),
        (["filename", "label"], [["img/0.jpg", 0.5]], "not-a-label"),
        (["filename", "label"], [["img/0.jpg", datetime.datetime(2024, 1, 1)]], "not-a-label"),
        (["filename", "label"], [[0.5, "a"]], "not-a-row"),
        (["filename", "label"], [[datetime.datetime(2024, 1, 1), "a"]], "not-a-row"),
        (["filename", "label"], [["img/9.jpg", "a"]], "no-images"),
        (["filename", "label"], [], "empty-table"),
        (["filename", "label"], [["img/0.jpg", "a"], ["img/0.jpg", "b"]], "label-conflict"),
    ],
)
@pytest.mark.parametrize("suffix", [".xlsx", ".parquet"])
def test_bad_tables(images: Path, suffix: str, header: list[str], rows: list[list[object]], code: str) -> None:
    path = images / f"t{suffix}"
    WRITERS[suffix](path, header, rows)
    with raises(DataError, code):
        read_table(path)


@pytest.mark.parametrize("content", [b"", b"x" * 1000, b"PK\x03\x04" + b"\0" * 200, b"PAR1" + b"\xff" * 50 + b"PAR1"])
@pytest.mark.parametrize("suffix", [".xlsx", ".parquet"])
def test_files_that_are_no_tables(images: Path, suffix: str, content: bytes) -> None:
    path = images / f"t{suffix}"
    path.write_bytes(content)
    with raises(DataError, "unreadable"):
        read_table(path)


@pytest.mark.parametrize("suffix", [".xlsx", ".parquet"])
def test_a_file_that_was_cut_off(images: Path, suffix: str) -> None:
    path = images / f"t{suffix}"
    WRITERS[suffix](path, HEADER, ROWS)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with raises(DataError, "unreadable"):
        read_table(path)


def test_a_zip_that_is_not_a_workbook(images: Path) -> None:
    with zipfile.ZipFile(images / "t.xlsx", "w") as archive:
        archive.writestr("hello.txt", "x")
    with raises(DataError, "unreadable"):
        read_table(images / "t.xlsx")


def test_a_zip_bomb_is_refused_before_it_is_unpacked(images: Path) -> None:
    path = images / "t.xlsx"
    as_excel(path, HEADER, ROWS)
    with (
        zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive,
        archive.open("xl/more.xml", "w", force_zip64=True) as part,
    ):
        for _ in range(150):
            part.write(bytes(10**6))
    assert path.stat().st_size < 10**6
    with raises(DataError, "too-large") as caught:
        read_table(path)
    assert caught.value.facts["n_bytes"] > 150 * 10**6


@pytest.mark.parametrize(("suffix", "package"), [(".xlsx", "openpyxl"), (".parquet", "pyarrow")])
def test_a_missing_package_is_named(images: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, package: str) -> None:
    path = images / f"t{suffix}"
    WRITERS[suffix](path, HEADER, ROWS)
    for module in (package, f"{package}.parquet"):
        monkeypatch.setitem(__import__("sys").modules, module, None)
    with raises(DataError, "missing-package") as caught:
        read_table(path)
    assert caught.value.facts["package"] == package


def test_columns_of_bytes_are_left_out(images: Path) -> None:
    path = images / "t.parquet"
    frame = {
        "file_name": ["img/0.jpg"],
        "label": ["a"],
        "image": [{"bytes": b"x", "path": None}],
        "raw": [b"y"],
        "site": ["A"],
    }
    pd.DataFrame(frame).to_parquet(path)
    assert list(read_table(path).metadata) == ["site"]


@pytest.mark.parametrize(
    ("data", "options"),
    [
        ("t.csv", {"labels": "labels.txt"}),
        ("t.csv", {"box_margin": 0.3}),
        (".", {"label_column": "x"}),
        ("x.npz", {"label_column": "x"}),
    ],
)
def test_options_that_do_not_apply(images: Path, data: str, options: dict[str, object]) -> None:
    (images / "t.csv").write_text("file_name,label\nimg/0.jpg,a\n")
    np.savez(images / "x.npz", features=np.eye(2), labels=["a", ""])
    with raises(ConfigError, "unused-option") as caught:
        open_data(images / data, **options)
    assert caught.value.facts["setting"] in options


@every_kind
def test_truth_from_every_format(images: Path, suffix: str) -> None:
    path = images / f"truth{suffix}"
    WRITERS[suffix](path, ["image", "species"], [["img/0.jpg", "oak"], ["gone.jpg", "ash"], ["img/1.jpg", "unknown"]])
    assert read_truth(path) == {"img/0.jpg": "oak", "gone.jpg": "ash"}
    assert read_truth(path, file_column="image", label_column="species") == {"img/0.jpg": "oak", "gone.jpg": "ash"}


def test_truth_of_other_data(pile: Path, tmp_path: Path) -> None:
    assert read_truth(pile)["apple/0.jpg"] == "apple"
    path = tmp_path / "x.npz"
    np.savez(path, features=np.eye(3), labels=["a", "b", ""], truth=["a", "b", "c"], names=["1", "2", "3"])
    assert read_truth(path) == {"1": "a", "2": "b", "3": "c"}


def test_a_truth_column_is_preferred_to_labels(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("file,label,species,truth\n1.jpg,a,x,b\n")
    assert read_truth(path) == {"1.jpg": "b"}
    assert read_truth(path, label_column="species") == {"1.jpg": "x"}
    path.write_text("file,truth\n1.jpg,a\n1.jpg,b\n")
    with raises(DataError, "label-conflict"):
        read_truth(path)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".xlsx", ".parquet"])
def test_whole_numbers_beside_missing_values(images: Path, suffix: str) -> None:
    """pandas makes floats of them, and writes 3.0; true classes, of which none is missing, stay 3."""
    frame = pd.DataFrame(
        {"file_name": [f"img/{i}.jpg" for i in range(4)], "label": [3, 10, -1, None], "truth": [3, 10, 3, 4]}
    )
    path = images / f"t{suffix}"
    if suffix in (".csv", ".tsv"):
        frame.to_csv(path, index=False, sep="," if suffix == ".csv" else "\t")
        assert "3.0" in path.read_text()
    else:
        WRITERS[suffix](path, list(frame), frame.astype(object).where(frame.notna(), None).values.tolist())
    collection = read_table(path)
    assert collection.catalog.class_names == ("3", "10")
    assert collection.catalog.labels.tolist() == [0, 1, -1, -1]
    assert collection.truth is not None
    assert collection.truth.class_names == ("3", "10", "4")


@pytest.mark.parametrize(
    ("cells", "names"),
    [
        (["1.5", "3.0"], ("1.5", "3.0")),  # these are no whole numbers
        (["3.0", "oak"], ("3.0", "oak")),
        (["3", "4.0"], ("3", "4.0")),
        (["NA", " 3.00 "], ("3",)),
        (["-1.0", "2.0"], ("2",)),
        ([f"{'1' * 21}.0", "2.0"], (f"{'1' * 21}.0", "2.0")),
        (["٣.0", "2.0"], ("2.0", "٣.0")),
    ],
)
def test_other_numbers_stay_as_they_are(images: Path, cells: list[str], names: tuple[str, ...]) -> None:
    path = images / "t.csv"
    path.write_text("file_name,label,n\n" + "".join(f"img/{i}.jpg,{cell},3.0\n" for i, cell in enumerate(cells)))
    collection = read_table(path)
    assert collection.catalog.class_names == names
    assert list(collection.metadata["n"]) == ["3.0", "3.0"]


@pytest.mark.parametrize(
    ("labels", "truth", "names"),
    [
        (["1.0", "2.0", ""], ["1.0", "2.0", "2.5"], ("1.0", "2.0", "2.5")),  # versions
        (["1.0", "2.5", ""], ["", "", "2.0"], ("1.0", "2.5", "2.0")),
        (["1.0", "2.0", ""], ["1", "2", "oak"], ("1", "2", "oak")),
        (["1", "2", ""], ["1.0", "2.0", "3.0"], ("1", "2", "3")),
    ],
)
def test_labels_and_true_classes_have_the_same_names(
    images: Path, labels: list[str], truth: list[str], names: tuple[str, ...]
) -> None:
    path = images / "t.csv"
    rows = zip(labels, truth, strict=True)
    path.write_text("file_name,label,truth\n" + "".join(f"img/{i}.jpg,{a},{b}\n" for i, (a, b) in enumerate(rows)))
    collection = read_table(path)
    assert collection.truth is not None
    assert collection.truth.class_names == names
    assert collection.truth.labels.tolist() == [0, 1, 2]


@pytest.mark.parametrize("column", ["truth", "label"])
def test_whole_numbers_in_tables_of_true_classes(tmp_path: Path, column: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"file_name,{column}\n1.jpg,3.0\n2.jpg,\n3.jpg,-1.0\n4.jpg,12.0\n")
    assert read_truth(path) == {"1.jpg": "3", "4.jpg": "12"}


CELLS = st.one_of(
    st.none(), st.text(max_size=12), st.integers(), st.floats(), st.booleans(), st.lists(st.integers(), max_size=2),
    st.sampled_from(["img/0.jpg", "img/1.jpg", "NA", "../x.jpg", "/etc/passwd", "a\0b"]),
)  # fmt: skip


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=6))
def test_any_rows_give_a_collection_or_a_clear_error(images: Path, rows: list[tuple[object, ...]]) -> None:
    """Whatever the cells of a table are: every row is used, skipped with a reason, or named in an error."""
    import json

    path = images / "any.jsonl"
    keys = ("file_name", "label", "site")
    path.write_text("".join(json.dumps(dict(zip(keys, row, strict=True))) + "\n" for row in rows))
    try:
        found: Collection = open_data(path, group_column="site") if rows else open_data(path)
    except NewkindError as error:
        assert error.code not in ("data", "error")  # noqa: PT017
        return
    assert len(found.catalog) + len(found.skipped) == len(rows)
    assert all(len(column) == len(found.catalog) for column in found.metadata.values())


def test_formulas_without_values_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A program that computes nothing saves formulas alone; in a sheet from Excel an empty text is a value."""
    book = openpyxl.Workbook()
    for row in (["file", "label"], ["0.jpg", '=UPPER("x")'], ["1.jpg", "bee"], ["2.jpg", "=A2"]):
        book.worksheets[0].append(row)
    path = tmp_path / "t.xlsx"
    book.save(path)
    with excel_records(path) as (header, rows):
        assert header == ("file", "label")
        assert [values for _, values in rows] == [("0.jpg", None), ("1.jpg", "bee"), ("2.jpg", None)]
    assert "B2 and 1 more cell have a formula without a stored value" in caplog.text
    caplog.clear()
    with_values = tmp_path / "values.xlsx"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(with_values, "w") as new:
        for name in old.namelist():
            content = (
                old.read(name).replace(b'r="B2"', b'r="B2" t="str"').replace(b"<f>A2</f><v />", b"<f>A2</f><v>7</v>")
            )
            new.writestr(name, content)
    with excel_records(with_values) as (_, rows):
        assert [values[1] for _, values in rows][1:] == ["bee", 7]
    assert not caplog.text
