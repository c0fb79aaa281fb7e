"""The rehearsal of `modern`: a read-out that keeps every answer, confidences near to what is right, and outliers."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from newkind.evaluation import calibration_error
from newkind.methods.modern import Modern, ModernConfig
from newkind.methods.rehearsal import MOST_SMOOTHING, Fold, ReadOut, fit_read_out, rehearse
from newkind.pipeline.confidence import confidence_card
from newkind.training.network import Network
from small_training import Images, softmax

DIM = 16
CPU = torch.device("cpu")


def clusters(n_classes: int, n_known: int, *, n_each: int = 24, spread: float = 1.0) -> tuple[Images, np.ndarray]:
    """Images with half of the first `n_known` classes labelled, and the true classes."""
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(n_classes), n_each)
    values = rng.normal(size=(n_classes, DIM))[truth] + spread * rng.normal(size=(len(truth), DIM))
    labels = np.where((truth < n_known) & (np.arange(len(truth)) % 2 == 0), truth, -1)
    return Images(torch.from_numpy(values).float(), torch.from_numpy(labels), n_known), truth


def started(images: Images, n_categories: int) -> Modern:
    method = Modern(DIM, n_categories, ModernConfig())
    method.start(images)
    method.calibrate(images)
    return method


def folds_of(seed: int, n: int = 60, k: int = 7) -> tuple[Fold, ...]:
    rng = np.random.default_rng(seed)
    return tuple(
        Fold(rng.normal(size=(n, k)).astype(np.float32), rng.random(n) < 0.7, rng.random(n) < 0.5, 3) for _ in range(2)
    )


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 1000), temperature=st.floats(0.005, 5), smoothing=st.floats(0, 0.5))
def test_a_read_out_never_changes_the_answer(seed: int, temperature: float, smoothing: float) -> None:
    fold, by = folds_of(seed)[0], ReadOut(temperature, smoothing)
    p = (1 - smoothing) * softmax(fold.logits.astype(np.float64) / temperature) + smoothing / 7
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert (p[np.arange(len(p)), fold.logits.argmax(axis=1)] >= p.max(axis=1) * (1 - 1e-9)).all()
    np.testing.assert_allclose(fold.confidence(by), p.max(axis=1), rtol=1e-6)
    np.testing.assert_allclose(fold.novelty(by), p[:, 3:].sum(axis=1), rtol=1e-6, atol=1e-9)
    assert (fold.confidence(ReadOut(1.5 * temperature, smoothing)) <= fold.confidence(by) + 1e-9).all()


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1000))
def test_no_other_read_out_has_a_smaller_brier_score(seed: int) -> None:
    folds = folds_of(seed)
    right = np.concatenate([fold.is_right for fold in folds])

    def score(by: ReadOut) -> float:
        return float(np.square(np.concatenate([fold.confidence(by) for fold in folds]) - right).mean())

    best = score(fit_read_out(folds, ReadOut(1.0)))
    for temperature in np.geomspace(0.1, 10, 40):
        for smoothing in np.linspace(0, MOST_SMOOTHING, 11):
            assert best <= score(ReadOut(float(temperature), float(smoothing))) + 1e-4


def test_accidents_of_whole_classes_become_smoothing() -> None:
    rng = np.random.default_rng(0)
    n, k, temperature = 4000, 10, 0.1
    logits = rng.uniform(-1, 1, size=(n, k)).astype(np.float32)
    p = Fold(logits, np.ones(n, bool), np.zeros(n, bool), 5).confidence(ReadOut(temperature))
    right = (rng.random(n) < p) & (rng.random(n) < 0.8)  # a fifth is wrong, however near its prototype
    found = fit_read_out((Fold(logits, right, np.zeros(n, bool), 5),), ReadOut(0.05))
    assert found.temperature == pytest.approx(temperature, rel=0.25)
    assert found.smoothing == pytest.approx(0.2, abs=0.04)


def test_the_read_out_stays_in_its_range() -> None:
    fold = folds_of(0)[0]
    sure, unsure = (
        fit_read_out((Fold(fold.logits, np.full(60, right), fold.is_new, 3),), ReadOut(1.0)) for right in (True, False)
    )
    assert sure.temperature == pytest.approx(0.1, rel=0.01)
    assert sure.smoothing == 0
    assert unsure.temperature == pytest.approx(10.0, rel=0.01)
    assert unsure.smoothing == MOST_SMOOTHING


def test_a_rehearsal_says_which_hidden_labels_are_right() -> None:
    images, _ = clusters(8, 6, spread=0.5)
    found = rehearse(images, ModernConfig(), n_categories=8, temperature=0.05, device=CPU)
    assert found is not None
    assert found.is_right.mean() > 0.8  # the clusters are far apart
    for fold in found.folds:
        best = fold.logits.argmax(axis=1)
        assert (best[fold.is_right & fold.is_new] >= fold.n_kept).all()
        assert (best[fold.is_right & ~fold.is_new] < fold.n_kept).all()


def test_calibration_lowers_the_error_on_the_truth_and_keeps_every_answer() -> None:
    images, truth = clusters(8, 6, n_each=40, spread=1.6)
    raw = Modern(DIM, 8, ModernConfig())
    raw.start(images)
    method = started(images, 8)
    free = (images.labels < 0).numpy()
    known = free & (truth < 6)
    logits = [m.logits(images.values).detach() for m in (raw, method)]
    best = [x.argmax(dim=1).numpy() for x in logits]
    np.testing.assert_array_equal(best[0], best[1])
    errors = []
    for m, b in zip((raw, method), best, strict=True):
        confident = Network(None, m).category_probabilities(images.values).detach().max(dim=1).values.numpy()
        errors.append(calibration_error(confident[known], (b == truth)[known]))
    assert method.temperature > 1.2 * raw.temperature  # the clusters overlap, and 0.05 is far too certain
    assert errors[1] < errors[0]


def test_the_reported_error_is_that_of_an_independent_computation() -> None:
    images, _ = clusters(8, 6, spread=1.2)
    method = started(images, 8)
    found, card = method.rehearsal, confidence_card(method)
    assert found is not None
    total, pairs = 0.0, list(zip(found.held_out_confidence(), found.is_right, strict=True))
    for low in np.arange(15) / 15:  # plain loops over bins (low, low + 1/15]
        inside = [(p, right) for p, right in pairs if low < p <= low + 1 / 15 + 1e-12]
        total += abs(sum(p - right for p, right in inside))
    assert card["calibration_error"] == pytest.approx(
        total / len(pairs), abs=0.02
    )  # a value on a bound may change bins
    assert card["calibrated"] is True
    assert card["temperature"] == pytest.approx(found.fitted.temperature, rel=1e-6)
    assert card["smoothing"] == pytest.approx(found.fitted.smoothing, rel=1e-6)
    assert 0 < card["novelty"]["threshold"] < 1


def test_too_few_labels_keep_the_raw_temperature() -> None:
    for images, k in ((clusters(6, 3)[0], 6), (clusters(8, 5, n_each=4)[0], 8)):
        method = started(images, k)
        assert method.rehearsal is None
        assert method.temperature == pytest.approx(0.05)
        card = confidence_card(method)
        assert card["calibrated"] is False
        assert "labelled" in card["reason"]


def test_foreign_images_are_outliers_and_ordinary_ones_are_not() -> None:
    images, _ = clusters(8, 6, spread=0.5)
    method = started(images, 8)
    ordinary = method.is_outlier(images.values)
    middle = images.values.mean(dim=0)
    away = images.values - middle
    basis = torch.linalg.svd(away[::24], full_matrices=True).Vh  # directions of one image per class come first
    foreign = method.is_outlier(middle + 4 * basis[8:])
    assert ordinary is not None
    assert foreign is not None
    assert ordinary.float().mean() < 0.05
    assert foreign.float().mean() > 0.5
    assert Modern(DIM, 8, ModernConfig()).is_outlier(images.values) is None


def test_a_model_without_calibration_is_loaded() -> None:
    images, _ = clusters(8, 6)
    method = started(images, 8)
    old = {k: v for k, v in method.state_dict().items() if not k.startswith("read_out") and k != "typical_similarity"}
    loaded = Modern(DIM, 8, ModernConfig())
    loaded.load_state_dict(old)
    assert loaded.temperature == pytest.approx(0.05)
    assert loaded.smoothing == 0
    assert loaded.is_outlier(images.values) is None
    again = Modern(DIM, 8, ModernConfig())
    again.load_state_dict(method.state_dict())
    assert (again.temperature, again.smoothing) == (method.temperature, method.smoothing)
