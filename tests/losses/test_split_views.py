"""Rows of several views, and losses that need at least two of them."""

import pytest
import torch

import newkind.losses
from error_codes import raises
from newkind.errors import ConfigError
from newkind.losses import (
    consistency_loss,
    pseudo_label_loss,
    self_distillation_loss,
    self_label_loss,
    swapped_prediction_loss,
)
from newkind.losses.views import split_views


def test_rows_come_view_by_view() -> None:
    rows = torch.arange(12.0).view(6, 2)
    assert split_views(rows, 3).tolist() == [rows[:2].tolist(), rows[2:4].tolist(), rows[4:].tolist()]
    assert split_views(rows[:0], 2).shape == (2, 0, 2)


def test_views_must_have_the_same_size() -> None:
    with raises(ConfigError, "views-unequal") as caught:
        split_views(torch.ones(5, 2), 2)
    assert caught.value.facts == {"n_rows": 5, "n_views": 2}


@pytest.mark.parametrize(
    "loss",
    [
        lambda x: consistency_loss(x, 1),
        lambda x: self_label_loss(x, 1, student_temperature=0.1),
        lambda x: self_distillation_loss(x, 1, student_temperature=0.1, teacher_temperature=0.1),
        lambda x: swapped_prediction_loss(x[None], x[None], temperature=0.1),
        lambda x: pseudo_label_loss(x, torch.zeros(4).long(), torch.ones(4) > 0, torch.ones(3), 1, strength=0.5),
    ],
)
def test_a_single_view_is_an_error(loss) -> None:
    with raises(ConfigError, "too-few-views"):
        loss(torch.ones(4, 3))


def test_public_names_exist_and_are_sorted() -> None:
    names = newkind.losses.__all__
    assert names == sorted(names)
    assert all(hasattr(newkind.losses, name) for name in names)
