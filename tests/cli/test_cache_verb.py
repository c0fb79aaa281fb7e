"""`newkind cache` and `newkind weights`."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from error_codes import raises
from newkind.cli import app
from newkind.errors import BackboneError, CacheError, ConfigError, DataError, NewkindError, WeightsError

SMALL = ["--backbone", "vit_tiny_patch16_224", "--random-weights", "--image-size", "32", "--views", "2"]
Newkind = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def newkind(tmp_path: Path) -> Newkind:
    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "newkind", *map(os.fspath, arguments)],
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
            env=os.environ | {"COLUMNS": "300", "NEWKIND_CACHE": str(tmp_path / "cache")},
        )
        assert done.returncode == 0, done.stderr
        return done

    return run


def test_build_list_prune(newkind: Newkind, pile: Path, tmp_path: Path) -> None:
    tokens = tmp_path / "cache" / "tokens"
    assert "27 views" in newkind("cache", pile, *SMALL, "--dry-run").stderr
    assert not tokens.exists()
    assert "27 views" in newkind("cache", pile, *SMALL).stderr
    (folder,) = tokens.iterdir()
    assert str(folder) in newkind("cache", pile, *SMALL).stdout
    listed = newkind("cache", "list").stdout
    assert folder.name in listed
    assert "vit_tiny_patch16_224" in listed
    assert folder.name in newkind("cache", "prune", folder.name).stdout
    assert list(tokens.iterdir()) == []


def test_verify_finds_damage_and_broken_folders_do_not_hide_the_others(
    newkind: Newkind, pile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = tmp_path / "cache" / "tokens"
    newkind("cache", pile, *SMALL)
    (folder,) = tokens.iterdir()
    assert f"{folder.name}: intact" in newkind("cache", "verify").stdout
    broken = {"empty": None, "list": "[]", "number": '{"about": 3, "layout": {"n_views": "x"}, "format": 2}'}
    broken["places"] = '{"about": {"place": 3, "backbone": []}, "layout": {"n_views": 1e999}, "format": 2}'
    for name, text in broken.items():
        (tokens / name).mkdir()
        if text is not None:
            (tokens / name / "meta.json").write_text(text)
    (tokens / "empty" / "dangling").symlink_to("nowhere")
    listed = newkind("cache", "list").stdout
    assert all(name in listed for name in (folder.name, *broken))
    shard = folder / "tokens-00000.bin"
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 1
    shard.write_bytes(content)
    monkeypatch.setenv("NEWKIND_CACHE", str(tmp_path / "cache"))
    with raises(CacheError, "damaged") as caught:
        CliRunner().invoke(app, ["cache", "verify"], catch_exceptions=False)
    assert caught.value.facts["names"] == sorted([folder.name, *broken])
    newkind("cache", "prune", "--all")
    assert list(tokens.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "kind", "code"),
    [
        (["cache", "PILE", "--backbone", "resnet18", "--random-weights"], BackboneError, "unsupported-backbone"),
        (["cache", "PILE", *SMALL, "--image-size", "100"], BackboneError, "image-size"),
        (["cache", "PILE", *SMALL, "--device", "quantum"], ConfigError, "unknown-device"),
        (["cache", "PILE", *SMALL[:-1], "1"], CacheError, "out-of-range"),
        (["cache", "PILE", "--weights", "none.pth"], WeightsError, "weights-missing"),
        (["cache", "prune"], CacheError, "nothing-named"),
        (["cache", "prune", "nothing"], CacheError, "unknown-cache"),
        (["cache", "verify", "nothing"], CacheError, "unknown-cache"),
        (["weights", "resnet18"], BackboneError, "unsupported-backbone"),
    ],
)
def test_bad_input(
    pile: Path, tmp_path: Path, monkeypatch, arguments: list[str], kind: type[NewkindError], code: str
) -> None:
    monkeypatch.setenv("NEWKIND_CACHE", str(tmp_path / "cache"))
    with raises(kind, code):
        CliRunner().invoke(
            app, [str(pile) if argument == "PILE" else argument for argument in arguments], catch_exceptions=False
        )


def test_data_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(DataError):
        CliRunner().invoke(app, ["cache", str(tmp_path / "nowhere"), *SMALL], catch_exceptions=False)


def test_weights_on_this_machine(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("NEWKIND_CACHE", str(tmp_path))
    monkeypatch.setattr("newkind.backbone.weights._list_hub_cache", list)
    assert "vit_small_patch14_dinov2.lvd142m" in CliRunner().invoke(app, ["weights"]).stdout
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "some_vit.safetensors").write_bytes(b"")
    assert "some_vit" in CliRunner().invoke(app, ["weights"]).stdout
