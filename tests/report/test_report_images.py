"""Where the images are looked for, and what is said if they are gone."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from newkind.data import from_features, open_data
from newkind.errors import DataError
from newkind.report.contents import read_contents
from newkind.report.images import benchmark_of, find_pictures
from newkind.runs.run import Run


def test_found_where_the_run_had_them_with_their_truth(run: Run, tmp_path: Path) -> None:
    contents = read_contents(run)
    for pictures in (find_pictures(contents), find_pictures(contents, collection=open_data(tmp_path / "data"))):
        assert pictures.images is not None
        assert pictures.images.names[int(pictures.place[5])] == contents.files[5]
        assert pictures.truth is not None
        assert [pictures.class_names[c] for c in pictures.truth[-2:]] == ["plum", "plum"]
        assert pictures.note == ""


def test_found_where_they_were_moved_to(run: Run, tmp_path: Path) -> None:
    shutil.move(tmp_path / "data", tmp_path / "elsewhere")
    contents = read_contents(run)
    assert "--data" in find_pictures(contents).note
    assert find_pictures(contents).images is None
    moved = find_pictures(contents, data=tmp_path / "elsewhere")
    assert moved.note == ""
    assert moved.truth is not None
    (tmp_path / "elsewhere" / "metadata.csv").unlink()  # then there are only files, and no truth
    bare = find_pictures(contents, data=tmp_path / "elsewhere")
    assert bare.images is not None
    assert bare.images.open(int(bare.place[7])).size == (40, 30)
    assert bare.truth is None


def test_a_list_that_outlived_its_images_is_not_enough(run: Run, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "data" / "img")
    shutil.rmtree(tmp_path / "data" / "<script>alert(1)<")
    assert "not to be found" in find_pictures(read_contents(run)).note


def test_a_folder_that_does_not_exist_is_an_error(run: Run, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        find_pictures(read_contents(run), data=tmp_path / "nowhere")


def test_broken_files_are_named_and_later_ones_are_not(run: Run, tmp_path: Path) -> None:
    table = tmp_path / "data" / "metadata.csv"
    (tmp_path / "data" / "broken.png").write_bytes(b"not a picture")
    shutil.copy(tmp_path / "data" / "img" / "0-00.png", tmp_path / "data" / "later.png")
    table.write_text(table.read_text() + "broken.png,,\nlater.png,,\n")
    found = find_pictures(read_contents(run)).skipped
    assert [item.name for item in found] == ["broken.png"]
    assert "not an image" in found[0].reason


def test_ready_features_have_no_pictures(run: Run) -> None:
    contents = read_contents(run)
    labels = np.where(contents.is_free, -1, 0).astype(np.int32)
    collection = from_features(np.zeros((48, 3), np.float32), labels, names=contents.files)
    pictures = find_pictures(contents, collection=collection)
    assert pictures.images is None
    assert "features" in pictures.note


@pytest.mark.parametrize(
    ("origin", "expected"),
    [("cub in /data/a b", ("cub", "/data/a b")), ("/home/cub in x", None), ("what in /data", None), ("cub", None)],
)
def test_a_benchmark_is_known_by_its_name(origin: str, expected: tuple[str, str] | None) -> None:
    assert benchmark_of(origin) == expected
