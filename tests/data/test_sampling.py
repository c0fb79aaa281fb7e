"""The balanced sampling of an epoch."""

import numpy as np

from newkind.data.holdings import Holdings
from newkind.data.sampling import epoch_batches


def test_half_of_a_batch_is_labelled_in_expectation() -> None:
    labels = np.r_[np.zeros(100, int), np.full(900, -1)]
    drawn = epoch_batches(labels, batch_size=100, seed=0, epoch=0)
    assert drawn.shape == (10, 100)
    many = np.concatenate([epoch_batches(labels, batch_size=100, seed=0, epoch=e) for e in range(20)])
    share = (labels[many] >= 0).mean()
    assert abs(share - 0.5) < 0.02  # 20,000 draws: three standard deviations are 0.011


def test_every_image_of_a_kind_is_drawn_equally_often() -> None:
    labels = np.r_[np.zeros(10, int), np.full(40, -1)]
    counts = np.bincount(
        np.concatenate([epoch_batches(labels, batch_size=50, seed=1, epoch=e).ravel() for e in range(400)]),
        minlength=50,
    )
    np.testing.assert_allclose(counts[:10], 1000, rtol=0.15)
    np.testing.assert_allclose(counts[10:], 250, rtol=0.3)


def test_a_function_of_seed_and_epoch_and_the_short_batch_is_dropped() -> None:
    labels = np.r_[np.zeros(5, int), np.full(8, -1)]
    first = epoch_batches(labels, batch_size=4, seed=0, epoch=3)
    assert first.shape == (3, 4)
    assert np.array_equal(first, epoch_batches(labels, batch_size=4, seed=0, epoch=3))
    assert not np.array_equal(first, epoch_batches(labels, batch_size=4, seed=0, epoch=4))
    assert not np.array_equal(first, epoch_batches(labels, batch_size=4, seed=1, epoch=3))


def test_one_kind_only() -> None:
    for labels in (np.zeros(8, int), np.full(8, -1)):
        assert epoch_batches(labels, batch_size=4, seed=0, epoch=0).shape == (2, 4)


def many_batches(labels: np.ndarray, holdings: Holdings, *, size: int = 40) -> np.ndarray:
    """Images (draws, W, batch size per process) of many epochs."""
    epochs = [epoch_batches(labels, batch_size=size, seed=0, epoch=e, holdings=holdings) for e in range(300)]
    return np.concatenate(epochs).reshape(-1, len(holdings.of_process), size // len(holdings.of_process))


def shares(labels: np.ndarray, drawn: np.ndarray, n_classes: int) -> np.ndarray:
    """Share of each class among drawn images, unlabelled first."""
    return np.bincount(labels[drawn].ravel() + 1, minlength=n_classes + 1) / drawn.size


def test_processes_of_one_disk_draw_what_one_process_would() -> None:
    labels = np.r_[np.zeros(20, int), np.ones(10, int), np.full(50, -1)]
    alone = epoch_batches(labels, batch_size=16, seed=3, epoch=2)
    joint = epoch_batches(labels, batch_size=16, seed=3, epoch=2, holdings=Holdings.everywhere(80, 4))
    assert np.array_equal(alone, joint)


def test_every_disk_draws_its_own_images_with_the_classes_of_all() -> None:
    """The first disk has three quarters of class 0, a third of class 1 and most of the unlabelled images."""
    labels = np.r_[np.zeros(40, int), np.ones(30, int), np.full(130, -1)]
    of_image = np.r_[np.arange(40) >= 30, np.arange(30) >= 10, np.arange(130) >= 100].astype(np.int64)
    holdings = Holdings(of_image, np.array([0, 1, 1]))
    drawn = many_batches(labels, holdings, size=60)
    for process, disk in enumerate((0, 1, 1)):
        assert set(of_image[drawn[:, process]].ravel()) == {disk}
        np.testing.assert_allclose(shares(labels, drawn[:, process], 2), [0.5, 2 / 7, 1.5 / 7], atol=0.02)
    counts = np.bincount(drawn[:, 0].ravel(), minlength=200)[:30]  # of one class and one disk
    np.testing.assert_allclose(counts, counts.mean(), rtol=0.3)


def test_a_class_that_a_disk_lacks_is_drawn_by_the_others() -> None:
    labels = np.r_[np.zeros(8, int), np.ones(32, int), np.full(40, -1)]
    of_image = np.r_[np.zeros(8, int), np.arange(32) % 2, np.arange(40) % 2]
    drawn = many_batches(labels, Holdings(of_image, np.array([0, 1])))
    np.testing.assert_allclose(shares(labels, drawn, 2), [0.5, 0.1, 0.4], atol=0.02)
    np.testing.assert_allclose(shares(labels, drawn[:, 0], 2)[1], 0.2, atol=0.02)
    assert shares(labels, drawn[:, 1], 2)[1] == 0
