"""Prototypes of very many images: the mixture is fitted to a sample, and everything large is computed in parts."""

import io
from pathlib import Path

import numpy as np
import pytest
import torch

from newkind.clustering import whitening
from newkind.clustering.sampling import sample_rows
from newkind.evaluation import accuracy
from newkind.methods import frame as frame_module
from newkind.methods import rehearsal as rehearsal_module
from newkind.methods.frame import Frame, FrameConfig, find_prototypes
from newkind.methods.rehearsal import rehearse
from newkind.runs import run as run_module
from newkind.runs.recorded_array import to_half
from newkind.runs.run import Run
from small_training import Images

DIM, K, KNOWN = 16, 12, 6


def clusters(n_each: int = 150, spread: float = 1.0) -> tuple[Images, np.ndarray]:
    """Images of classes of different sizes, with half of the known ones labelled, and the true classes."""
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(K), n_each * (1 + np.arange(K) % 3))
    values = 2.5 * rng.normal(size=(K, DIM))[truth] + spread * rng.normal(size=(len(truth), DIM))
    labels = np.where((truth < KNOWN) & (rng.random(len(truth)) < 0.5), truth, -1)
    return Images(torch.from_numpy(values).float(), torch.from_numpy(labels), KNOWN), truth


def scores(images: Images, truth: np.ndarray) -> float:
    frame = Frame(DIM)
    found = find_prototypes(frame, images.features(), images, FrameConfig(), K)
    best = (frame(images.features()) @ found.directions.T).argmax(dim=1).numpy()
    free = images.labels.numpy() < 0
    return accuracy(truth[free], best[free], truth[free] < KNOWN).all


def test_a_mixture_of_a_sample_finds_the_categories_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    images, truth = clusters()
    whole = scores(images, truth)
    monkeypatch.setattr(frame_module, "MOST_CELLS", len(truth) // 5 * K)
    assert scores(images, truth) > whole - 0.03 > 0.9


def test_the_rehearsal_of_a_sample_makes_confidence_equal_to_accuracy(monkeypatch: pytest.MonkeyPatch) -> None:
    images, _ = clusters(spread=1.6)
    whole = rehearse(images, FrameConfig(), n_categories=K, temperature=0.1, device=torch.device("cpu"))
    monkeypatch.setattr(rehearsal_module, "MOST_CELLS", 1200 * K)
    part = rehearse(images, FrameConfig(), n_categories=K, temperature=0.1, device=torch.device("cpu"))
    assert whole is not None
    assert part is not None
    assert sum(len(fold.is_right) for fold in part.folds) < sum(len(fold.is_right) for fold in whole.folds)
    assert abs(part.confidence(part.fitted).mean() - part.is_right.mean()) < 0.03
    assert abs(part.is_right.mean() - whole.is_right.mean()) < 0.15


def test_a_sample_has_labelled_rows_of_every_class() -> None:
    labels = np.random.default_rng(0).permutation(np.repeat([-1, 0, 1, 2], [9_000, 990, 9, 1]))
    rows = sample_rows(labels, 100, seed=0)
    assert rows is not None
    assert np.array_equal(rows, np.unique(rows))
    assert (np.bincount(labels[rows][labels[rows] >= 0]) >= [4, 4, 1]).all()
    assert abs(len(rows) - 100) < 12
    again, other = sample_rows(labels, 100, seed=0), sample_rows(labels, 100, seed=1)
    assert np.array_equal(rows, again)
    assert not np.array_equal(rows, other)
    assert sample_rows(labels, 10_000, seed=0) is None


def test_a_sample_has_unlabelled_rows() -> None:
    labels = np.random.default_rng(0).permutation(np.repeat([-1, 0, 1], [500, 9_000, 500]))
    rows = sample_rows(labels, 100, seed=0, least_free=300)
    assert rows is not None
    assert 300 <= (labels[rows] < 0).sum() <= 310
    assert len(rows) < 420


def test_more_categories_than_a_sample_would_have_unlabelled_images(monkeypatch: pytest.MonkeyPatch) -> None:
    images, _ = clusters()
    for module in (frame_module, rehearsal_module):
        monkeypatch.setattr(module, "MOST_CELLS", 120 * 150)
    frame = Frame(DIM)
    assert find_prototypes(frame, images.features(), images, FrameConfig(), 150).directions.shape == (150, DIM)
    assert rehearse(images, FrameConfig(), n_categories=150, temperature=0.1, device=torch.device("cpu")) is not None


def test_parts_give_the_same_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    images, _ = clusters()
    whole, parted = Frame(DIM), Frame(DIM)
    z = whole.fit(images.features(), images.labels, shrinkage=0.3)
    for module in (frame_module, whitening):
        monkeypatch.setattr(module, "ROWS", 100)
        monkeypatch.setattr(module, "PART", 70)
    torch.testing.assert_close(parted.fit(images.features(), images.labels, shrinkage=0.3), z, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(parted.weight, whole.weight, atol=1e-5, rtol=1e-5)


def test_features_written_in_parts_are_an_npy_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "ROWS", 7)
    features = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    features[3] = 1e9
    Run(tmp_path).write_features(features)
    expected = io.BytesIO()
    np.save(expected, to_half(features))
    assert (tmp_path / "features.npy").read_bytes() == expected.getvalue()
