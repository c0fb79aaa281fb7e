"""Hold-out problems are made of the labelled images alone."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from labelled_clouds import SECRET, clouds

from error_codes import raises
from newkind.data import Features, from_arrays, open_data
from newkind.errors import ConfigError, DataError
from newkind.experiments.holdout import hold_out


@pytest.mark.parametrize("n_known", [4, 6, 7])
@pytest.mark.parametrize("fold", [0, 1, 2, 5])
def test_a_problem_has_the_labelled_images_and_nothing_else(n_known: int, fold: int) -> None:
    whole = clouds(n_known)
    found = hold_out(whole, fold=fold, seed=3)
    given = {
        name: whole.catalog.class_names[label]
        for name, label in zip(whole.catalog.items.names, whole.catalog.labels, strict=True)
        if label >= 0
    }
    truth = found.truth
    assert truth is not None
    assert {
        name: truth.class_names[label] for name, label in zip(found.catalog.items.names, truth.labels, strict=True)
    } == given  # the truth is the given labels, all of them, and nothing else
    known, new = truth.class_names[: truth.n_old], truth.class_names[truth.n_old :]
    assert found.catalog.class_names == known
    assert sorted(known + new) == sorted(whole.catalog.class_names)
    assert {len(known), len(new)} == {n_known // 2, n_known - n_known // 2}
    labelled = found.catalog.is_labelled
    assert np.array_equal(found.catalog.labels[labelled], truth.labels[labelled])
    assert not labelled[truth.labels >= truth.n_old].any()
    assert found.catalog.counts().tolist() == [3] * len(known)  # of six
    assert SECRET not in repr(truth) + repr(found.catalog.class_names)
    assert isinstance(found.catalog.items, Features)
    assert isinstance(whole.catalog.items, Features)
    assert np.array_equal(found.catalog.items.values, whole.catalog.items.values[whole.catalog.is_labelled])


def test_pairs_of_folds_are_complementary_halves() -> None:
    halves = [hold_out(clouds(), fold=fold, seed=0).catalog.class_names for fold in range(6)]
    everything = set(clouds().catalog.class_names)
    for first, second in zip(halves[::2], halves[1::2], strict=True):
        assert set(first) == everything - set(second)
    assert len(set(halves)) == 6
    assert hold_out(clouds(), fold=0, seed=0).catalog.class_names == halves[0]
    assert len({hold_out(clouds(), fold=0, seed=seed).catalog.class_names for seed in range(8)}) > 1


def test_a_benchmark_stays_a_benchmark() -> None:
    assert hold_out(replace(clouds(), benchmark="cub"), fold=0, seed=0).benchmark == "cub"


def test_a_single_labelled_image_stays_labelled_or_is_new() -> None:
    whole = clouds()
    labels = whole.catalog.labels.copy()
    labels[np.flatnonzero(labels == 2)[1:]] = -1
    whole = replace(whole, catalog=replace(whole.catalog, labels=labels))
    for fold in (0, 1):
        found = hold_out(whole, fold=fold, seed=0)
        assert (found.catalog.counts() >= 1).all()
        assert found.truth is not None
        assert (found.truth.labels == found.truth.class_names.index("class2")).sum() == 1


@pytest.mark.parametrize(("keep", "code"), [(0, "no-labels"), (1, "too-few-classes"), (3, "too-few-classes")])
def test_too_few_classes(keep: int, code: str) -> None:
    whole = clouds()
    labels = np.where(whole.catalog.labels < keep, whole.catalog.labels, np.int32(-1))
    with raises(DataError, code):
        hold_out(replace(whole, catalog=replace(whole.catalog, labels=labels)), fold=0, seed=0)


def test_too_few_images() -> None:
    whole = clouds()
    labels = np.full_like(whole.catalog.labels, -1)
    for label in range(6):
        labels[np.flatnonzero(whole.catalog.labels == label)[: 2 if label < 3 else 1]] = label
    with raises(DataError, "too-few-images") as caught:
        hold_out(replace(whole, catalog=replace(whole.catalog, labels=labels)), fold=0, seed=0)
    assert caught.value.facts["n_classes"] == 3


def test_fold_and_seed_are_not_negative() -> None:
    for change in ({"fold": -1}, {"seed": -1}):
        with raises(ConfigError, "out-of-range"):
            hold_out(clouds(), **{"fold": 0, "seed": 0} | change)


def test_images_come_from_the_same_place(tmp_path: Path, make_image) -> None:  # type: ignore[no-untyped-def]
    """So that the tokens of the whole collection are found."""
    for i in range(8):
        make_image(tmp_path / "pile" / f"class{i // 2}" / f"{i}.png", seed=i)
        make_image(tmp_path / "pile" / f"{i}.png", seed=100 + i)
    in_files = open_data(tmp_path / "pile")
    pixels = np.random.default_rng(0).integers(0, 255, (16, 8, 8, 3), dtype=np.uint8)
    in_memory = from_arrays(pixels, [i // 4 if i % 2 else -1 for i in range(16)])
    for whole in (in_files, in_memory):
        found = hold_out(whole, fold=0, seed=0)
        assert found.origin == whole.origin
        assert getattr(found.catalog.items, "root", None) == getattr(whole.catalog.items, "root", None)
        chosen = np.flatnonzero(whole.catalog.is_labelled)
        assert len(found.catalog) == len(chosen) == 8
        for i, j in enumerate(chosen.tolist()):
            assert found.catalog.items.names[i] == whole.catalog.items.names[j]
            assert found.catalog.items.content(i) == whole.catalog.items.content(j)  # type: ignore[union-attr]
            assert found.catalog.items.open(i).tobytes() == whole.catalog.items.open(j).tobytes()  # type: ignore[union-attr]
