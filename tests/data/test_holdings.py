"""Which process can read which image."""

import numpy as np

from newkind.data.holdings import Holdings


def test_disks_that_have_everything_are_one() -> None:
    held = np.array([[True, False, True]] * 2)
    found = Holdings.of_disks(held, np.array([0, 1, 1]))
    assert found.of_image.tolist() == [0, -1, 0]
    assert found.of_process.tolist() == [0, 0, 0]
    assert found.usable.tolist() == [True, False, True]


def test_an_image_on_several_disks_belongs_to_one() -> None:
    held = np.ones((2, 8), dtype=bool)
    held[0, 6], held[1, 7] = False, False
    found = Holdings.of_disks(held, np.array([0, 1]))
    assert found.of_image.tolist() == [0, 1, 0, 1, 0, 1, 1, 0]


def test_images_are_divided_without_duplicates() -> None:
    of_image = np.array([0, 1, -1, 1, 1, 0, 1, 1])
    holdings = Holdings(of_image, np.array([1, 0, 1]))
    images = np.array([7, 6, 5, 4, 3, 1, 0])
    shares = holdings.divided(images)
    assert sorted(np.concatenate(shares).tolist()) == list(range(7))
    assert [set(of_image[images[share]]) for share in shares] == [{1}, {0}, {1}]
    assert [len(share) for share in shares] == [3, 2, 2]
    assert holdings.only(images).of_image.tolist() == of_image[images].tolist()
    everywhere = Holdings.everywhere(5, 2).divided(np.arange(5))
    assert [share.tolist() for share in everywhere] == [[0, 1, 2], [3, 4]]
