"""Items and labels in the forms that scikit-learn's users give."""

from pathlib import Path

import numpy as np
import pandas
import pytest
from PIL import Image

from error_codes import raises
from newkind.data.array_likes import are_numbers, from_images, given_images, list_of_labels
from newkind.data.items import FileImages
from newkind.errors import BrokenImage, DataError


@pytest.mark.parametrize("X", [["a.png", "b.png"], [Path("a.png"), Path("b.png")], np.array(["a.png", "b.png"])])
def test_paths(X: object) -> None:
    images = given_images(X)
    assert isinstance(images, FileImages)
    assert list(images.names) == ["a.png", "b.png"]


@pytest.mark.parametrize("X", ["a.png", Path("a.png"), [], [1.0, 2.0], np.array([["a.png"]]), None, np.eye(3)])
def test_other_things_than_images(X: object) -> None:
    assert given_images(X) is None


def test_images_of_all_kinds(make_image, tmp_path: Path) -> None:
    path = make_image(tmp_path / "a.png")
    with Image.open(path) as opened:
        picture = opened.convert("RGB")
    pixels = np.asarray(picture)
    images = given_images(pandas.Series([path, path.read_bytes(), picture, pixels, None, b"no image"]))
    assert images is not None
    assert len(images) == 6
    assert all(np.array_equal(np.asarray(images.open(i)), pixels) for i in range(4))
    assert images.content(2) == images.content(3)
    for i in (4, 5):
        with pytest.raises(BrokenImage):
            images.open(i)
        with pytest.raises(BrokenImage):
            images.content(i) if i == 4 else images.open_reduced(i, shorter_side=8)


def test_labels() -> None:
    assert list_of_labels(None, 2) == [None, None]
    assert list_of_labels(np.array([[1], [-1]]), 2) == [1, -1]
    assert list_of_labels(["bee", None], 2) == ["bee", None]
    assert are_numbers([1, -1, None, ""])
    assert not are_numbers(["bee", -1])


def test_a_collection_of_paths() -> None:
    images = given_images(["a.png", "b.png"])
    assert images is not None
    catalog = from_images(images, ["bee", None], ["burst", "burst"]).catalog
    assert list(catalog.items.names) == ["a.png", "b.png"]
    assert catalog.labels.tolist() == [0, -1]
    assert catalog.groups is not None
    assert catalog.groups.tolist() == [0, 0]
    with raises(DataError, "length-mismatch"):
        from_images(images, ["bee"])
    with raises(DataError, "group-count"):
        from_images(images, ["bee", None], ["burst"])
