"""Learning rate, batch size and weight decay: those of the user, otherwise those of the method."""

import numpy as np
import pytest

from error_codes import raises
from newkind.config import TrainingConfig
from newkind.data import Collection, from_features
from newkind.errors import ConfigError
from newkind.methods.registry import METHODS
from newkind.optimizer_config import OptimizerConfig
from newkind.pipeline.configure import configure, own_optimizer


def collection(n: int = 600) -> Collection:
    labels = np.where(np.arange(n) % 3 == 0, np.arange(n) % 2, -1)
    return from_features(np.random.default_rng(0).normal(size=(n, 4)).astype(np.float32), labels)


@pytest.mark.parametrize(
    ("method", "rate", "batch", "decay"),
    [
        ("simgcd", 0.1, 128, 5e-5),
        ("gcd", 0.1, 128, 5e-5),
        ("rankstats", 0.001, 128, 1e-4),
        ("uno", 0.1, 512, 1.5e-4),
        ("orca", 0.01, 512, 5e-4),
        ("debiaspl", 0.001, 384, 1e-4),
    ],
)
def test_each_method_has_its_own(method: str, rate: float, batch: int, decay: float) -> None:
    own = METHODS[method].method.optimizer
    assert (own.learning_rate, own.batch_size, own.weight_decay) == (rate, batch, decay)
    assert own.decay_vectors == (method != "simgcd")  # only SimGCD's code leaves vectors out
    found = configure(collection(), method=method, recipe="release" if method == "simgcd" else None).training
    assert (found.learning_rate, found.weight_decay, found.decay_vectors) == (rate, decay, own.decay_vectors)
    assert found.batch_size == 128  # a tenth of 600 images is less
    assert found.optimizer == own_optimizer(method, 600)


def test_large_batches_need_enough_images() -> None:
    assert [own_optimizer("orca", n).batch_size for n in (50, 1280, 3000, 5120, 10**6)] == [128, 128, 300, 512, 512]


def test_what_is_given_is_used() -> None:
    training = TrainingConfig(learning_rate=0.3, batch_size=20, weight_decay=0.0, decay_vectors=False)
    found = configure(collection(), method="orca", training=training).training
    assert found.optimizer == OptimizerConfig(learning_rate=0.3, batch_size=20, weight_decay=0.0, decay_vectors=False)
    part = configure(collection(), method="orca", training=TrainingConfig(learning_rate=0.3)).training
    assert (part.learning_rate, part.weight_decay) == (0.3, 5e-4)


def test_without_a_method_they_are_those_of_simgcd() -> None:
    assert TrainingConfig().optimizer == OptimizerConfig()
    assert TrainingConfig().batch_size is None
    for bad in ({"batch_size": 1}, {"learning_rate": 0.0}, {"weight_decay": -1.0}):
        with raises(ConfigError, "out-of-range"):
            TrainingConfig(**bad)
