"""Dataset objects in the style of torchvision."""

from pathlib import Path

import numpy as np
from PIL import Image
from torchvision.datasets import FakeData, ImageFolder

from error_codes import raises
from newkind.data import ArrayImages, FileImages, from_torchvision
from newkind.errors import DataError


def test_files_and_arrays_are_read_directly(pile: Path) -> None:
    folder = from_torchvision(ImageFolder(pile), is_labelled=np.arange(8) < 3)
    assert isinstance(folder.catalog.items, FileImages)
    assert folder.catalog.class_names == ("apple",)
    assert folder.truth is not None
    assert folder.truth.class_names == ("apple", "pear", "unlabelled")
    assert folder.catalog.items.open(0).size == (24, 16)
    with raises(DataError, "label-count"):
        from_torchvision(ImageFolder(pile), is_labelled=[True])

    class InMemory:
        data = np.zeros((6, 8, 8, 3), np.uint8)
        targets = (0, 1, 2, 0, 1, 2)
        classes = ("a", "b", "c")

    assert isinstance(from_torchvision(InMemory()).catalog.items, ArrayImages)


def test_a_dataset_that_only_returns_images() -> None:
    fake = FakeData(size=4, image_size=(3, 12, 10), num_classes=2)
    fake.targets = [0, 1, 0, 1]
    items = from_torchvision(fake).catalog.items
    assert items.open(2).size == (10, 12)
    assert isinstance(items.open(2), Image.Image)
    assert items.content(1) != items.content(2)
    fake.transform = np.asarray
    with raises(DataError, "not-pil-images"):
        items.open(2)
    with raises(DataError, "no-targets"):
        from_torchvision(FakeData(size=4))
