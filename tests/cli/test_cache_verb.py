"""`newkind cache` and `newkind weights`, run as a user runs them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def newkind(tmp_path: Path):
    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "newkind", *map(os.fspath, arguments)],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"COLUMNS": "300", "NEWKIND_CACHE": str(tmp_path / "cache")},
        )

    return run


SMALL = ["--backbone", "vit_tiny_patch16_224", "--random-weights", "--image-size", "32", "--views", "2"]


def test_build_list_prune(newkind, pile: Path) -> None:
    dry = newkind("cache", pile, *SMALL, "--dry-run")
    assert "9 images x (2 + 1) views = 27 views" in dry.stdout, dry.stderr
    assert "No token cache" in newkind("cache", "list").stdout
    done = newkind("cache", pile, *SMALL)
    assert done.returncode == 0, done.stderr
    assert "9 images have their tokens" in done.stdout
    assert "All 9 images have their tokens already" in newkind("cache", pile, *SMALL).stdout
    listed = newkind("cache", "list").stdout
    assert "vit_tiny_patch16_224" in listed
    name = next(line.split()[0] for line in listed.splitlines() if line.startswith("pile-"))
    assert "Removed" in newkind("cache", "prune", name).stdout
    assert "No token cache" in newkind("cache", "list").stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["cache", "nowhere"], "does not exist"),
        (["cache", "prune"], "Nothing was named"),
        (["cache", "prune", "nothing"], "no token cache called nothing"),
        (["cache", "PILE", "--backbone", "resnet18", "--random-weights"], "cannot be built"),
        (["cache", "PILE", *SMALL, "--device", "quantum"], "cannot be used"),
        (["cache", "PILE", *SMALL, "--dtype", "float64"], "float16 or int8"),
        (["cache", "PILE", *SMALL[:-1], "1"], "at least 2 random views"),
        (["cache", "PILE", "--weights", "none.pth"], "no weights file"),
        (["weights", "resnet18"], "cannot be built"),
    ],
)
def test_bad_input(newkind, pile: Path, arguments: list[str], sentence: str) -> None:
    done = newkind(*(str(pile) if argument == "PILE" else argument for argument in arguments))
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_weights_lists_what_is_there(newkind) -> None:
    assert "No weights in" in newkind("weights").stdout
