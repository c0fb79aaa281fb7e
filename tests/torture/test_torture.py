"""A share of the torture suite; `make torture` runs all of it."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(sys.platform != "linux", reason="needs LD_PRELOAD and /proc")
@pytest.mark.skipif(not (shutil.which("cc") or shutil.which("gcc")), reason="needs a C compiler")
def test_killed_commands_and_failing_writes_end_in_the_same_bytes() -> None:
    program = Path(__file__).with_name("torture.py")
    quick = ["--commands", "sort, copy", "sort, move", "predict", "cache", "decide", "export, csv", "apply"]
    command = [sys.executable, str(program), "--trials", "2", *quick]  # those that train take minutes to prepare
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["value"] == 0
    assert result["kills"] > 0
    assert result["errors"] > 0
