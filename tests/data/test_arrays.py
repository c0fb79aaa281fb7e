"""Image arrays and feature arrays."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from error_codes import raises
from newkind.data import from_arrays, from_features
from newkind.errors import DataError


def test_image_arrays() -> None:
    digits = load_digits()
    images = (digits.images[:20] * 15).astype(np.uint8)
    labels = np.where(digits.target[:20] < 5, digits.target[:20], -1)
    collection = from_arrays(images, labels, truth=digits.target[:20])
    assert collection.catalog.class_names == tuple("01234")
    assert collection.truth is not None
    assert collection.truth.labels.tolist() == digits.target[:20].tolist()
    assert np.array_equal(np.asarray(collection.catalog.items.open(3))[..., 0], images[3])


def test_lists_are_arrays_too() -> None:
    assert len(from_features([[0.0, 1.0], [1.0, 0.0]], [0, -1]).catalog) == 2


def test_class_names_for_numeric_labels() -> None:
    collection = from_features(np.eye(4), [2, -1, 0, -1], truth=[2, 1, 0, 1], class_names=["ant", "bee", "cat"])
    assert collection.catalog.class_names == ("ant", "cat")
    assert collection.truth is not None
    assert collection.truth.class_names == ("ant", "cat", "bee")
    assert collection.truth.labels.tolist() == [1, 2, 0, 2]


@pytest.mark.parametrize("bad", [0.5, np.inf, -2, [0], 1j])
def test_values_that_are_not_labels(bad: object) -> None:
    with raises(DataError, "not-a-label"):
        from_features(np.eye(2), [0, bad], class_names=["ant", "bee", "cat"])


def test_a_number_without_a_class_name() -> None:
    with raises(DataError, "label-range"):
        from_features(np.eye(2), [0, 3], class_names=["ant", "bee", "cat"])


@pytest.mark.parametrize("shape", [(2, 0, 8), (2, 8, 0, 3), (2, 3, 8, 3)])
def test_images_without_pixels(shape: tuple[int, ...]) -> None:
    with raises(DataError, "image-too-small"):
        from_arrays(np.zeros(shape, np.uint8), [0, 1])


@pytest.mark.parametrize(
    "pixels", [np.zeros((4, 3, 8, 8), np.uint8), np.zeros((4, 8, 8), np.float32), np.zeros((8, 8), np.uint8)]
)
def test_arrays_of_another_shape_or_dtype(pixels: np.ndarray) -> None:
    with raises(DataError, "image-array"):
        from_arrays(pixels, [-1] * len(pixels))


def test_bad_features_and_lengths() -> None:
    features = np.ones((5, 3))
    with raises(DataError, "label-count"):
        from_features(features, [0] * 4)
    with raises(DataError, "label-count"):
        from_features(features, [0] * 5, truth=[0] * 4)
    with raises(DataError, "feature-array"):
        from_features(features[:, :0], [0] * 5)
    features[3, 1] = np.nan
    with raises(DataError, "not-finite") as caught:
        from_features(features, [0] * 5)
    assert caught.value.facts["row"] == 3
    with raises(DataError, "names-not-unique"):
        from_features(np.ones((2, 3)), [0, 1], names=["a", "a"])
