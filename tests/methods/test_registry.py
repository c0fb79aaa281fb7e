"""Methods by name: settings from text, recipes, and invalid settings."""

from dataclasses import fields

import numpy as np
import pytest

from error_codes import raises
from newkind.errors import ConfigError
from newkind.methods.registry import METHODS, build_method, find_method, method_config, resolve_method


@pytest.mark.parametrize("name", METHODS)
def test_every_method_is_built_from_its_defaults(name: str) -> None:
    config = method_config(name)
    assert type(config) is METHODS[name].config
    method = build_method(name, 32, 7, config)
    assert type(method) is METHODS[name].method
    assert method.n_categories == 7
    assert method.temperature > 0


@pytest.mark.parametrize("name", METHODS)
def test_every_setting_survives_a_trip_through_text(name: str) -> None:
    config = method_config(name)
    plain = {f.name: getattr(config, f.name) for f in fields(config)}
    assert method_config(name, settings={key: str(value) for key, value in plain.items()}) == config
    assert method_config(name, settings=plain) == config


@pytest.mark.parametrize(
    ("name", "field", "given", "read"),
    [
        ("simgcd", "entropy_weight", "2", 2.0),
        ("simgcd", "entropy_weight", 2, 2.0),
        ("simgcd", "entropy_weight", np.float32(0.5), 0.5),
        ("simgcd", "entropy_weight", "1e-3", 0.001),
        ("simgcd", "joint", "false", False),
        ("simgcd", "joint", "True", True),
        ("simgcd", "joint", False, False),
        ("simgcd", "supervision", "self-label", "self-label"),
        ("simgcd", "projector_hidden", "64", 64),
        ("simgcd", "projector_hidden", 64.0, 64),
        ("debiaspl", "teacher_decay", "None", None),
        ("debiaspl", "teacher_decay", None, None),
        ("debiaspl", "teacher_decay", "0.5", 0.5),
        ("kmeans", "n_init", np.int64(3), 3),
        ("debiaspl", "teacher_decay", "none", None),
        ("rankstats", "rank_by", "magnitude", "magnitude"),
        ("uno", "n_heads", "1", 1),
        ("orca", "max_margin", "0", 0.0),
    ],
)
def test_settings(name: str, field: str, given, read) -> None:
    found = getattr(method_config(name, settings={field: given}), field)
    assert found == read
    assert type(found) is type(read)


@pytest.mark.parametrize(
    ("name", "field", "given", "code"),
    [
        ("simgcd", "entropy_weight", "much", "wrong-type"),
        ("simgcd", "entropy_weight", "nan", "wrong-type"),
        ("simgcd", "entropy_weight", float("inf"), "wrong-type"),
        ("simgcd", "entropy_weight", None, "wrong-type"),
        ("simgcd", "entropy_weight", True, "wrong-type"),
        ("simgcd", "entropy_weight", [1], "wrong-type"),
        ("simgcd", "joint", "maybe", "wrong-type"),
        ("simgcd", "joint", 2, "wrong-type"),
        ("simgcd", "supervision", "guess", "unknown-choice"),
        ("simgcd", "projector_hidden", "64.5", "wrong-type"),
        ("simgcd", "projector_hidden", 64.5, "wrong-type"),
        ("simgcd", "projector_hidden", True, "wrong-type"),
        ("simgcd", "entropy", "1", "unknown-setting"),
        ("simgcd", "n_categories", "9", "unknown-setting"),
        ("simgcd", "student_temperature", "0", "out-of-range"),
    ],
)
def test_settings_that_make_no_sense(name: str, field: str, given, code: str) -> None:
    with raises(ConfigError, code) as caught:
        method_config(name, settings={field: given})
    assert caught.value.facts["setting"] == field


def test_unknown_method() -> None:
    for call in (find_method, method_config):
        with raises(ConfigError, "unknown-method"):
            call("magic")


def test_recipes_and_benchmarks() -> None:
    assert method_config("simgcd", benchmark="cub").entropy_weight == 2
    assert method_config("simgcd", benchmark="cub", settings={"entropy_weight": "5"}).entropy_weight == 5
    paper = method_config("simgcd", recipe="paper", settings={"joint": "false"})
    assert (paper.teacher_shape, paper.negatives, paper.joint) == ("cosine", "other-view", False)
    with raises(ConfigError, "unknown-recipe"):
        resolve_method("orca", "paper")
    assert resolve_method("simgcd", "modern") == resolve_method("modern", None) == "modern"
    assert resolve_method("simgcd", "release") == "simgcd"
    with raises(ConfigError, "unknown-recipe"):
        method_config("simgcd", recipe="secret")
