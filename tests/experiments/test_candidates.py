"""What a tuning tries."""

import pytest
from labelled_clouds import clouds

from error_codes import raises
from newkind.config import BackboneConfig, TrainingConfig
from newkind.errors import ConfigError
from newkind.experiments.candidates import find_candidates, tuning_config
from newkind.experiments.holdout import hold_out
from newkind.experiments.tune_config import TuneConfig, read_tries


def candidates(**change) -> list[tuple[dict[str, str], bool]]:  # type: ignore[no-untyped-def]
    config = TuneConfig(training=TrainingConfig(epochs=2, batch_size=16), **change)
    found = find_candidates(config, hold_out(clouds(), fold=0, seed=0))
    return [(candidate.settings, candidate.is_default) for candidate in found]


def test_settings_from_the_command_line() -> None:
    tries = read_tries(["block-rate=0, 0.01", "mixture_balance=1,4"])
    assert tries == {"block_rate": ("0", "0.01"), "mixture_balance": ("1", "4")}
    for text in ("block_rate", "block_rate=", "block_rate=1,,2", "=1"):
        with raises(ConfigError, "not-name-values"):
            read_tries([text])
    with raises(ConfigError, "repeated-setting"):
        read_tries(["block_rate=0", "block_rate=1"])


def test_each_combination_once_and_the_default_first() -> None:
    release = candidates(recipe="release", tries={"head_rate": ["0.5", "1.0", "0.50"]})
    assert release == [({"head_rate": "1"}, True), ({"head_rate": "0.5"}, False)]
    assert candidates(recipe="release", tries={"head_rate": [0.5]}, settings={"block_rate": "0"}) == release
    both = candidates(recipe="release", tries={"head_rate": [0.5, 2], "joint": [True, False]})
    assert len(both) == 5
    assert ({"head_rate": "2", "joint": "false"}, False) in both


def test_any_number_of_views_can_be_asked_for() -> None:
    """Eight, the default of the token cache, too."""
    problem, training = hold_out(clouds(), fold=0, seed=0), TrainingConfig(epochs=2, batch_size=16)
    for views, expected in ((None, 4), (4, 4), (8, 8), (0, 0)):
        assert tuning_config(TuneConfig(training=training, views=views), problem, {}).backbone.views == expected


def test_settings_that_need_many_dimensions_can_be_tried() -> None:
    found = candidates(method="rankstats", tries={"relu": [True, False]})  # ranks five dimensions by default
    assert found == [({"relu": "true"}, True), ({"relu": "false"}, False)]


def test_default_tries() -> None:
    assert all("block_rate" not in settings for settings, _ in candidates())  # features have no block
    assert candidates() == candidates(method="modern")
    dino = BackboneConfig(name="vit_base_patch16_224.dino")
    with raises(ConfigError, "nothing-to-try"):  # whose default recipe is not modern
        candidates(backbone=dino)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"tries": {"speed": ["9"]}}, "unknown-setting"),
        ({"tries": {"block_rate": ["much"]}}, "wrong-type"),
        ({"tries": {"block_rate": ["-1"]}}, "out-of-range"),
        ({"tries": {"n_categories": ["5"]}}, "unknown-setting"),
        ({"tries": {"supervision": ["oracle"]}, "recipe": "release"}, "needs-truth"),
        ({"tries": {"block_rate": ["0.50"]}, "settings": {"block_rate": "1"}}, "conflict"),
        ({"tries": {"head_rate": ["1"]}, "recipe": "release"}, "single-candidate"),
        ({"recipe": "paper"}, "nothing-to-try"),
        ({"method": "kmeans"}, "nothing-to-try"),
        ({"method": "magic"}, "unknown-method"),
        ({"recipe": "magic", "tries": {"block_rate": ["0"]}}, "unknown-recipe"),
        ({"folds": 1}, "out-of-range"),
    ],
)
def test_bad_requests(change: dict, code: str) -> None:  # type: ignore[type-arg]
    with raises(ConfigError, code):
        candidates(**change)
