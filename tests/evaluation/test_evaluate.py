"""All scores at once: the same as those of the single functions, and ready for JSON."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

import newkind.evaluation
from error_codes import raises
from newkind.errors import DataError
from newkind.evaluation import (
    Accuracy,
    Distribution,
    ErrorKinds,
    accuracy,
    by_name,
    calibration_error,
    class_table,
    evaluate,
    match,
    novelty_auroc,
)


def labelling(seed, n=300):
    rng = np.random.default_rng(seed)
    y_true = rng.integers(0, 8, n)
    y_pred = np.where(rng.random(n) < 0.6, y_true, rng.integers(0, 11, n))
    return y_true, y_pred, y_true < 4


def test_parts_are_those_of_the_single_functions():
    data = labelling(0)
    result, matching = evaluate(*data), match(*data)
    assert result.n_samples == 300
    assert result.accuracy == accuracy(*data) == Accuracy.of(matching)
    assert result.by_name == by_name(*data) == evaluate(*data, n_known=4).by_name
    assert result.errors == ErrorKinds.of(matching)
    assert result.classes == class_table(matching)
    assert result.distribution == Distribution.of(matching)
    assert result.matching.counts.tolist() == matching.counts.tolist()


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32))
def test_nmi_and_ari_are_those_of_the_given_labels(seed):
    y_true, y_pred, is_old = labelling(seed)
    result = evaluate(y_true, y_pred, is_old)
    assert result.nmi == pytest.approx(normalized_mutual_info_score(y_true, y_pred))
    assert result.ari == pytest.approx(adjusted_rand_score(y_true, y_pred))


def test_to_dict_by_hand():
    result = evaluate(np.array([0, 1]), np.array(["x", "y"]), np.array([True, True]), class_names=["lark", "owl"])
    found = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert (found.pop("nmi"), found.pop("ari")) == pytest.approx((1, 1))
    assert found == {
        "n_samples": 2,
        "n_classes": 2,
        "n_active_clusters": 2,
        "accuracy": {"all": 1, "old": 1, "new": None, "all_balanced": 1, "old_balanced": 1, "new_balanced": None},
        "by_name": None,
        "novelty_auroc": None,
        "calibration_error": None,
        "sure": None,
        "errors": {"true_old": 0, "false_new": 0, "false_old": 0, "true_new": 0},
        "distribution": {"true_old": [0.5, 0.5], "true_new": [], "predicted_old": [0.5, 0.5], "predicted_new": []},
        "classes": [
            {
                "label": i,
                "name": name,
                "is_old": True,
                "n_true": 1,
                "n_predicted": 1,
                "cluster": cluster,
                "accuracy": 1,
            }
            for i, name, cluster in [(0, "lark", "x"), (1, "owl", "y")]
        ],
    }


@pytest.mark.parametrize("kind", ["int32", "uint8", "object", "str"])
def test_to_dict_is_json_for_every_kind_of_label(kind):
    y_true, y_pred, is_old = labelling(1)
    result = evaluate(y_true.astype(kind), y_pred.astype(kind), is_old).to_dict()
    assert json.loads(json.dumps(result, allow_nan=False)) == result


def test_class_names_are_checked():
    with raises(DataError, "class-names-missing"):
        evaluate([0, 1], [0, 1], [True, False], class_names=["lark"])


def test_accuracy_by_name_in_json():
    result = evaluate([0, 0, 1], [0, 5, 6], [True, True, False], n_known=1).to_dict()
    assert result["by_name"] == {
        "all": pytest.approx(2 / 3),
        "old": 0.5,
        "new": 1,
        "all_balanced": 0.75,
        "old_balanced": 0.5,
        "new_balanced": 1,
    }
    strings = evaluate(["owl", "wren"], ["owl", "new-01"], [True, False], known_names=["owl"])
    assert strings.by_name is not None
    assert strings.by_name.all == 1


@pytest.mark.parametrize("kind", ["int64", "str", "object"])
def test_novelty_and_calibration(kind):
    rng = np.random.default_rng(0)
    y_true = rng.integers(0, 6, 300)
    y_pred = np.where(rng.random(300) < 0.7, y_true, rng.integers(0, 6, 300))
    is_old, novelty, confidence = y_true < 3, rng.random(300), rng.random(300)
    names = {} if kind == "int64" else {"known_names": ["0", "1", "2"]}
    labels = [y.astype(str if kind == "object" else kind).astype(kind) for y in (y_true, y_pred)]
    found = evaluate(*labels, is_old, novelty=novelty, confidence=confidence, **names)
    # Every class is paired with the category of its own label here, so correctness is equality.
    assert found.by_name.all == pytest.approx((y_true == y_pred).mean())
    assert found.calibration_error == pytest.approx(calibration_error(confidence, y_true == y_pred))
    assert found.novelty_auroc == pytest.approx(novelty_auroc(is_old, novelty))
    assert evaluate([0, 0], [0, 0], [True, True], novelty=[0.1, 0.2]).novelty_auroc is None  # no new class


def test_every_sample_is_its_own_cluster():
    # scikit-learn 1.7 warns about this from 20 samples on, and warnings are errors here.
    result = evaluate(np.arange(30) % 3, np.arange(30), np.arange(30) % 3 == 0)
    assert (result.accuracy.all, result.ari) == (pytest.approx(3 / 30), 0)


def test_one_sample():
    result = evaluate([3], [8], [False])
    assert (result.accuracy.all, result.accuracy.new, result.nmi, result.ari) == (1, 1, 1, 1)


def test_public_names_exist_and_are_sorted():
    names = newkind.evaluation.__all__
    assert names == sorted(names)
    assert all(hasattr(newkind.evaluation, name) for name in names)
