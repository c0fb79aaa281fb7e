"""Protocols check what they are given and describe themselves."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small_features import write_blobs

from error_codes import raises
from newkind.data import from_features
from newkind.errors import ConfigError, DataError
from newkind.experiments.paper.dataset import BenchData, bench_data, open_bench_data
from newkind.experiments.paper.describe_protocol import SELECTION, describe_protocol
from newkind.experiments.paper.protocol import Protocol, read_epsilons, read_methods


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"seeds": 0}, "out-of-range"),
        ({"epochs": 0}, "out-of-range"),
        ({"batch_size": 1}, "out-of-range"),
        ({"recipe": "modern"}, "unknown-choice"),
    ],
)
def test_bad_protocols(change: dict, code: str) -> None:  # type: ignore[type-arg]
    with raises(ConfigError, code) as caught:
        Protocol(**change)
    assert caught.value.facts["setting"] in change


def test_lists_from_the_command_line() -> None:
    assert read_methods(" simgcd,gcd, simgcd,") == ("simgcd", "gcd")
    assert read_epsilons("0, 2,2") == (0.0, 2.0)
    for text in ("a", "-1", "nan"):
        with raises(ConfigError, "not-a-number"):
            read_epsilons(text)


def test_the_head_of_a_table(data: BenchData, protocol: Protocol) -> None:
    about = describe_protocol(protocol, [data, data], k_rule="known", seeds=range(2))
    assert about["selection"] == SELECTION
    assert about["data"].count("20 labelled images of 4 known classes") == 2
    assert about["backbone"].count("dimension 12") == 1  # the same for both
    assert about["seeds"].startswith("0, 1;")
    assert "2 / 2" not in about["recipe"]
    published = replace(data, collection=replace(data.collection, benchmark="cub"))
    assert "epsilon 2" in describe_protocol(protocol, [published], k_rule="known", seeds=[0])["recipe"]


def test_data_that_cannot_be_scored(tmp_path: Path) -> None:
    with raises(DataError, "no-truth"):
        open_bench_data(str(write_blobs(tmp_path / "blind.npz", with_truth=False)))
    labels, truth = ["a", "b", "a", "b", None, None], ["a", "b", "a", "b", None, None]
    with raises(DataError, "no-unlabelled-truth"):
        bench_data(from_features(np.eye(6), labels, truth=truth), title="x")
