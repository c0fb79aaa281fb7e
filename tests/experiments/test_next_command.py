"""Suggested commands are read back by a shell as they were meant."""

import shlex
from pathlib import Path

import pytest

from newkind.config import BackboneConfig, TrainingConfig
from newkind.experiments.next_command import options_of, shell_command, unused_folder


def test_only_what_differs_from_the_defaults() -> None:
    assert list(options_of(BackboneConfig())) == []
    assert list(options_of(BackboneConfig(name="vit_x", view_seed=3))) == ["--backbone", "vit_x"]  # no option for it
    training = TrainingConfig(epochs=5, batch_size=16, global_losses=True)
    assert list(options_of(training, without=("epochs",))) == ["--batch-size", "16", "--global-losses"]


def test_every_word_survives_a_shell() -> None:
    words = ["newkind", "discover", "it's a $HOME; rm *", "--out", "run"]
    command = shell_command(*words, settings={"a": "b c", "d": 1})
    assert shlex.split(command) == [*words, "--set", "a=b c", "--set", "d=1"]
    assert shlex.split(shell_command("newkind", "discover", "-x.npz"))[-1] == "./-x.npz"


def test_a_suggested_folder_does_not_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert unused_folder("run") == "run"
    for name in ("run", "run-2"):
        (tmp_path / name).mkdir()
    assert unused_folder("run") == "run-3"
