"""Settings: types, choices and bounds checked in one place; values from text; help texts from docstrings."""

from dataclasses import dataclass
from typing import Literal

import pytest

from error_codes import raises
from newkind.config import BackboneConfig, NCategories, TrainingConfig, parameter_docs, read_options
from newkind.errors import ConfigError
from newkind.setting import check_settings, read_setting, setting


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
