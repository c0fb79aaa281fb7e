"""Settings: types, choices and bounds checked in one place; values from text; help texts from docstrings."""

from dataclasses import dataclass, fields
from typing import Literal

import numpy as np
import pytest

from error_codes import raises
from newkind.config import BackboneConfig, NCategories, TrainingConfig, parameter_docs, read_options
from newkind.errors import ConfigError
from newkind.setting import check_settings, read_setting, setting, value_type


@dataclass(frozen=True)
class Example:
    """An example.

    Parameters
    ----------
    count : int, default=1
        Number of things,
        over two lines.
    share : float or None, default=0.5
        A share.
    kind, other : {"a", "b"}
        Two at once.
    """

    count: int = setting(1, at_least=1, at_most=9)
    share: float | None = setting(0.5, above=0, below=1)
    kind: Literal["a", "b"] = "a"
    other: Literal["a", "b"] = "b"

    def __post_init__(self) -> None:
        check_settings(self)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"count": 0}, "out-of-range"),
        ({"count": 10}, "out-of-range"),
        ({"count": 1.5}, "wrong-type"),
        ({"count": True}, "wrong-type"),
        ({"count": "1"}, "wrong-type"),
        ({"share": 0.0}, "out-of-range"),
        ({"share": 1.0}, "out-of-range"),
        ({"share": float("nan")}, "wrong-type"),
        ({"kind": "c"}, "unknown-choice"),
    ],
)
def test_invalid_values(change: dict, code: str) -> None:
    with raises(ConfigError, code) as caught:
        Example(**change)
    assert caught.value.facts["setting"] in change


def test_valid_values_and_text() -> None:
    assert Example(count=9, share=None, kind="b")
    assert read_setting(Example, "count", "3") == 3
    assert read_setting(Example, "share", "none") is None
    assert read_setting(Example, "kind", "b") == "b"
    with raises(ConfigError, "unknown-choice"):
        read_setting(Example, "kind", "c")


def test_help_comes_from_the_docstring() -> None:
    assert parameter_docs(Example) == {
        "count": "Number of things, over two lines.",
        "share": "A share.",
        "kind": "Two at once.",
        "other": "Two at once.",
    }
    for kind in (TrainingConfig, BackboneConfig, NCategories):
        assert parameter_docs(kind).keys() == kind.__dataclass_fields__.keys()


def test_options_by_name() -> None:
    training, backbone = read_options({"epochs": 3, "backbone": "vit_tiny_patch16_224", "views": 2})
    assert (training.epochs, backbone.name, backbone.views) == (3, "vit_tiny_patch16_224", 2)
    with raises(ConfigError, "unknown-option"):
        read_options({"epoch": 3})


def test_numbers_of_categories() -> None:
    assert NCategories.read(None, n_true=7) == NCategories("fixed", 7, from_truth=True)
    assert NCategories.read("12", n_true=7) == NCategories("fixed", 12)
    assert NCategories.read(None) == NCategories.read("auto", n_true=7) == NCategories("estimated")
    assert NCategories.read("auto", at_most=9) == NCategories("at-most", 9)
    for bad in ({"n_categories": 1}, {"n_categories": "many"}, {"n_categories": 5, "at_most": 9}, {"at_most": 0}):
        with pytest.raises(ConfigError):
            NCategories.read(**bad)


def every_config() -> list[type]:
    """Every config class with numbers."""
    from newkind.experiments.paper.protocol import Protocol
    from newkind.experiments.tune_config import TuneConfig
    from newkind.methods.registry import METHODS

    return [BackboneConfig, TrainingConfig, TuneConfig, Protocol, *dict.fromkeys(entry.config for entry in METHODS.values())]


@pytest.mark.parametrize("kind", every_config(), ids=lambda kind: kind.__name__)
def test_every_number_has_a_range(kind: type) -> None:
    """A number that multiplies time or memory has its own bound; the others have a common one."""
    for item in fields(kind):
        if value_type(kind, item.name) is int:
            assert {"at_most", "below"} & item.metadata.keys(), f"{kind.__name__}.{item.name} has no upper bound"
            assert {"at_least", "above"} & item.metadata.keys(), f"{kind.__name__}.{item.name} has no lower bound"
        elif value_type(kind, item.name) is not float:
            continue
        for value in (10**30, -(10**30), float("nan"), float("inf")):
            with pytest.raises(ConfigError):
                kind(**{item.name: value})


def test_numbers_of_absurd_length_are_refused_with_a_short_message() -> None:
    for number in (10**5000, "9" * 5000):
        with pytest.raises(ConfigError) as caught:
            TrainingConfig(epochs=number)  # type: ignore[arg-type]
        assert len(str(caught.value)) < 300
    with raises(ConfigError, "not-a-number") as refused:
        NCategories.read("9" * 5000)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("temperature", ["1e-300", "0", "-1", "1e300"])
def test_a_number_that_float32_cannot_divide_by_is_refused(temperature: str) -> None:
    from newkind.methods.registry import method_config

    with raises(ConfigError, "out-of-range"):
        method_config("modern", settings={"mixture_temperature": temperature})


@pytest.mark.parametrize("seed", [-1, 2**32, 10**30])
def test_seeds_have_a_range_everywhere(seed: int) -> None:
    from newkind.clustering.n_categories import estimate_n_categories
    from newkind.clustering.published_search import estimate_by_search

    x, y = np.eye(8), [0, 0, 1, 1, -1, -1, -1, -1]
    for estimate in (estimate_n_categories, estimate_by_search):
        with raises(ConfigError, "out-of-range"):
            estimate(x, y, n_known=2, seed=seed)
        with raises(ConfigError, "out-of-range"):
            estimate(x, y, n_known=2, max_categories=min(seed, 0))
