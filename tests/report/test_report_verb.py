"""`newkind report`, run as a user does."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from newkind.runs.run import Run

MakeRun = Callable[..., Run]


def newkind(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "newkind", *map(os.fspath, arguments)]
    environment = os.environ | {"COLUMNS": "200", "OMP_NUM_THREADS": "1", "BROWSER": "true"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=300)


def test_the_verb(make_run: MakeRun, tmp_path: Path) -> None:
    first, second = make_run("a"), make_run("b", seed=1)
    done = newkind("report", first.folder, "--compare", second.folder, "--out", tmp_path / "x.html", "--open")
    assert done.returncode == 0, done.stderr
    assert str(tmp_path / "x.html") in done.stdout
    assert 'id="comparison"' in (tmp_path / "x.html").read_text()
    assert not first.report_file.exists()

    (tmp_path / "x.html").write_text("mine")
    refused = newkind("report", first.folder, "--out", tmp_path / "x.html")
    assert refused.returncode == 2
    assert str(tmp_path / "x.html") in refused.stderr
    assert "--out" in refused.stderr
    assert (tmp_path / "x.html").read_text() == "mine"

    nothing = newkind("report", tmp_path / "data")
    assert nothing.returncode == 2
    assert "Traceback" not in nothing.stderr
