"""Methods by name: settings from text, and what is said of those that make no sense."""

from dataclasses import fields

import numpy as np
import pytest

from newkind.errors import ConfigError
from newkind.methods.registry import METHODS, build_method, find_method, method_config


@pytest.mark.parametrize("name", METHODS)
def test_every_method_is_built_from_its_defaults(name: str) -> None:
    config = method_config(name, n_categories=7)
    assert type(config) is METHODS[name].config
    assert config.n_categories == 7
    method = build_method(name, 32, config)
    assert type(method) is METHODS[name].method
    assert method.n_categories == 7
    assert method.temperature > 0


@pytest.mark.parametrize("name", METHODS)
def test_every_setting_survives_a_trip_through_text(name: str) -> None:
    config = method_config(name, n_categories=7)
    plain = {f.name: getattr(config, f.name) for f in fields(config) if f.name != "n_categories"}
    assert method_config(name, n_categories=7, settings={key: str(value) for key, value in plain.items()}) == config
    assert method_config(name, n_categories=7, settings=plain) == config


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
        ("gcd", "size_cap", "none", None),
        ("gcd", "size_cap", "None", None),
        ("gcd", "size_cap", None, None),
        ("gcd", "size_cap", "1.5", 1.5),
        ("kmeans", "n_init", np.int64(3), 3),
        ("debiaspl", "teacher_decay", "none", None),
        ("rankstats", "rank_by", "magnitude", "magnitude"),
        ("uno", "n_heads", "1", 1),
        ("orca", "max_margin", "0", 0.0),
    ],
)
def test_settings(name: str, field: str, given, read) -> None:
    found = getattr(method_config(name, n_categories=7, settings={field: given}), field)
    assert found == read
    assert type(found) is type(read)


@pytest.mark.parametrize(
    ("name", "field", "given", "message"),
    [
        ("simgcd", "entropy_weight", "much", "entropy_weight is a number; got 'much'"),
        ("simgcd", "entropy_weight", "nan", "entropy_weight is a number"),
        ("simgcd", "entropy_weight", float("inf"), "entropy_weight is a number"),
        ("simgcd", "entropy_weight", None, "entropy_weight is a number; got 'None'"),
        ("simgcd", "entropy_weight", True, "entropy_weight is a number"),
        ("simgcd", "entropy_weight", [1], "entropy_weight is a number"),
        ("simgcd", "joint", "maybe", "joint is true or false; got 'maybe'"),
        ("simgcd", "joint", 2, "joint is true or false"),
        ("simgcd", "supervision", "guess", "supervision is self-distil, self-label, minimal, oracle; got 'guess'"),
        ("simgcd", "projector_hidden", "64.5", "projector_hidden is a whole number"),
        ("simgcd", "projector_hidden", 64.5, "projector_hidden is a whole number"),
        ("simgcd", "projector_hidden", True, "projector_hidden is a whole number"),
        ("gcd", "size_cap", "big", "size_cap is a number or none; got 'big'"),
        ("simgcd", "entropy", "1", "no setting 'entropy'. Settings are .*entropy_weight"),
        ("simgcd", "n_categories", "9", "no setting 'n_categories'. .*--n-categories"),
        ("simgcd", "student_temperature", "0", "student_temperature must be larger than 0"),
    ],
)
def test_settings_that_make_no_sense(name: str, field: str, given, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        method_config(name, n_categories=7, settings={field: given})


def test_unknown_method() -> None:
    for call in (find_method, lambda name: method_config(name, n_categories=7)):
        with pytest.raises(ConfigError, match=r"no method 'magic'\. Methods are simgcd, gcd, kmeans, .*debiaspl"):
            call("magic")


def test_recipes_and_benchmarks() -> None:
    assert method_config("simgcd", n_categories=7, benchmark="cub").entropy_weight == 2
    assert (
        method_config("simgcd", n_categories=7, benchmark="cub", settings={"entropy_weight": "5"}).entropy_weight == 5
    )
    paper = method_config("simgcd", n_categories=7, recipe="paper", settings={"joint": "false"})
    assert (paper.teacher_shape, paper.negatives, paper.joint) == ("cosine", "other-view", False)
    with pytest.raises(ConfigError, match="orca has no recipe 'paper'"):
        method_config("orca", n_categories=7, recipe="paper")
    with pytest.raises(ConfigError, match="no recipe 'secret'"):
        method_config("simgcd", n_categories=7, recipe="secret")
