"""The balanced sampling of an epoch."""

import numpy as np

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
