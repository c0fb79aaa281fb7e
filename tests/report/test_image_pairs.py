"""Pairs of images of two runs with different paths."""

import pytest

from newkind.report.image_pairs import pair_images


def pairs(files: list[str], other_files: list[str]) -> dict[str, str]:
    found = pair_images(files, other_files)
    return {files[i]: other_files[j] for i, j in zip(found.here.tolist(), found.there.tolist(), strict=True)}


def test_equal_paths() -> None:
    found = pair_images(["a/1.jpg", "a/2.jpg", "b/1.jpg"], ["b/1.jpg", "a/1.jpg"])
    assert found.here.tolist() == [0, 2]
    assert found.there.tolist() == [1, 0]
    assert found.n_by_ending == 0


@pytest.mark.parametrize("root", ["photos/", "/mnt/data/photos/", "C:/photos/"])
def test_another_root(root: str) -> None:
    files = [f"{name}/{i}.jpg" for name in ("cat", "dog") for i in range(3)]
    others = [f"{root}{file}" for file in files]
    assert pairs(files, others) == dict(zip(files, others, strict=True))
    assert pairs(others, files) == dict(zip(others, files, strict=True))
    assert pair_images(files, others).n_by_ending == 6


def test_a_file_that_was_moved_into_a_class_folder() -> None:
    assert pairs(["unlabelled/17.jpg", "cat/3.jpg"], ["cat/17.jpg", "cat/3.jpg"]) == {
        "unlabelled/17.jpg": "cat/17.jpg",
        "cat/3.jpg": "cat/3.jpg",
    }


def test_the_longest_ending_decides() -> None:
    found = pairs(["x/cat/1.jpg", "y/cat/1.jpg"], ["z/x/cat/1.jpg", "z/y/cat/1.jpg"])
    assert found == {"x/cat/1.jpg": "z/x/cat/1.jpg", "y/cat/1.jpg": "z/y/cat/1.jpg"}


def test_an_ending_that_is_not_unique_pairs_nothing() -> None:
    assert pairs(["cat/1.jpg", "dog/1.jpg"], ["bird/1.jpg"]) == {}
    assert pairs(["cat/1.jpg"], ["bird/1.jpg", "fish/1.jpg"]) == {}


def test_nothing_in_common() -> None:
    assert len(pair_images(["1.jpg", "2.jpg"], ["a.png"])) == 0
    assert len(pair_images([], ["a.png"])) == 0
    assert len(pair_images(["ab/c.jpg"], ["b/xc.jpg"])) == 0  # endings are whole parts of a path
