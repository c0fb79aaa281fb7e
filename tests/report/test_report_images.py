"""Where the images of a run are found, and what is reported if they are missing."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from error_codes import raises
from newkind.data import from_features, open_data
from newkind.errors import DataError
from newkind.report.contents import read_contents
from newkind.report.images import benchmark_of, find_run_images
from newkind.runs.run import Run


def test_found_where_the_run_read_them_with_true_classes(run: Run, tmp_path: Path) -> None:
    contents = read_contents(run)
    for found in (find_run_images(contents), find_run_images(contents, collection=open_data(tmp_path / "data"))):
        assert found.images is not None
        assert found.is_there.all()
        assert found.images.names[int(found.place[5])] == contents.files[5]
        assert found.truth is not None
        assert [found.class_names[c] for c in found.truth[-2:]] == ["plum", "plum"]
        assert found.note == ""


def test_found_where_they_were_moved_to(run: Run, tmp_path: Path) -> None:
    shutil.move(tmp_path / "data", tmp_path / "elsewhere")
    contents = read_contents(run)
    missing = find_run_images(contents)
    assert missing.images is None
    assert not missing.is_there.any()
    assert "newkind report RUN --data FOLDER" in missing.note
    assert missing.searched == str(tmp_path / "data")
    moved = find_run_images(contents, data=tmp_path / "elsewhere")
    assert moved.note == ""
    assert moved.truth is not None
    (tmp_path / "elsewhere" / "metadata.csv").unlink()  # then there are only files, without true classes
    bare = find_run_images(contents, data=tmp_path / "elsewhere")
    assert bare.images is not None
    assert bare.images.open(int(bare.place[7])).size == (40, 30)
    assert bare.truth is None


def test_a_table_without_its_images_is_not_enough(run: Run, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "data" / "img")
    shutil.rmtree(tmp_path / "data" / "<script>alert(1)<")
    assert find_run_images(read_contents(run)).images is None


def test_a_folder_that_does_not_exist_is_an_error(run: Run, tmp_path: Path) -> None:
    with raises(DataError, "data-not-found") as caught:
        find_run_images(read_contents(run), data=tmp_path / "nowhere")
    assert caught.value.facts["data"] == tmp_path / "nowhere"


def test_broken_files_are_listed_and_later_ones_are_not(run: Run, tmp_path: Path) -> None:
    table = tmp_path / "data" / "metadata.csv"
    (tmp_path / "data" / "broken.png").write_bytes(b"not an image")
    shutil.copy(tmp_path / "data" / "img" / "0-00.png", tmp_path / "data" / "later.png")
    table.write_text(table.read_text() + "broken.png,,\nlater.png,,\n")
    found = find_run_images(read_contents(run)).skipped
    assert [item.name for item in found] == ["broken.png"]
    assert found[0].reason


def test_precomputed_features_have_no_images(run: Run) -> None:
    contents = read_contents(run)
    labels = np.where(contents.is_free, -1, 0).astype(np.int32)
    collection = from_features(np.zeros((48, 3), np.float32), labels, names=contents.files)
    found = find_run_images(contents, collection=collection)
    assert found.images is None
    assert found.note


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("cub:/data/a b", "cub"),
        ("cub in /data/a b", "cub"),  # format 1
        ("/home/cub in x", None),
        ("what in /data", None),
        ("C:/photos", None),
        ("cub", None),
        (None, None),
    ],
)
def test_a_benchmark_is_recognised_by_its_name(data: str | None, expected: str | None) -> None:
    found = benchmark_of({"data": data})
    assert (found.name if found else None) == expected
