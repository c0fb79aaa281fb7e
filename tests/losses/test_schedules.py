"""The schedules against NumPy's linspace and torch's own scheduler."""

from math import cos, pi

import numpy as np
import pytest
import torch

from error_codes import raises
from newkind.errors import ConfigError
from newkind.losses import cosine_learning_rate, teacher_temperature


@pytest.mark.parametrize("warmup_epochs", [1, 2, 30])
def test_linear_is_the_released_table(warmup_epochs: int) -> None:
    table = np.concatenate([np.linspace(0.07, 0.04, warmup_epochs), np.full(10, 0.04)])
    found = [
        teacher_temperature(epoch, start=0.07, end=0.04, warmup_epochs=warmup_epochs, shape="linear")
        for epoch in range(len(table))
    ]
    assert found == pytest.approx(table.tolist(), rel=1e-12)


def test_cosine_starts_and_ends_flat() -> None:
    found = [teacher_temperature(e, start=0.07, end=0.04, warmup_epochs=31, shape="cosine") for e in range(40)]
    assert found[:31] == pytest.approx([0.04 + 0.03 * (1 + cos(pi * e / 30)) / 2 for e in range(31)])
    assert found[15] == pytest.approx(0.055)
    assert found[0] == pytest.approx(0.07)
    assert found[30:] == pytest.approx([0.04] * 10)
    assert found == sorted(found, reverse=True)


@pytest.mark.parametrize("shape", ["linear", "cosine"])
def test_short_warmups_are_defined(shape: str) -> None:
    at = {"start": 0.07, "end": 0.04, "shape": shape}
    assert [teacher_temperature(e, warmup_epochs=0, **at) for e in range(2)] == [0.04, 0.04]
    assert [teacher_temperature(e, warmup_epochs=1, **at) for e in range(2)] == [0.07, 0.04]
    assert [teacher_temperature(e, warmup_epochs=2, **at) for e in range(3)] == [0.07, 0.04, 0.04]


def test_unknown_shape() -> None:
    with raises(ConfigError, "unknown-schedule"):
        teacher_temperature(0, start=0.07, end=0.04, warmup_epochs=30, shape="square")


@pytest.mark.parametrize("n_epochs", [1, 7, 200])
def test_learning_rate_is_torchs(n_epochs: int) -> None:
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=n_epochs, eta_min=0.1 * 1e-3)
    for epoch in range(n_epochs):
        found = cosine_learning_rate(epoch, base=0.1, n_epochs=n_epochs)
        assert found == pytest.approx(scheduler.get_last_lr()[0], rel=1e-9)
        optimizer.step()
        scheduler.step()


def test_learning_rate_ends() -> None:
    assert cosine_learning_rate(0, base=0.1, n_epochs=5) == pytest.approx(0.1)
    assert cosine_learning_rate(5, base=0.1, n_epochs=5, final_share=0.2) == pytest.approx(0.02)
