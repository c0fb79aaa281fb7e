"""How commands end when Ctrl-C comes early, the output is closed, or a result cannot be written."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import newkind as package

Newkind = Fails = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(features: Path, tmp_path: Path) -> Path:
    package.discover(features, tmp_path / "run", method="kmeans", n_categories=10, report=False)
    return tmp_path / "run"


@pytest.mark.parametrize(
    ("module", "content", "codes"),
    [
        ("typer", "", (-signal.SIGINT,)),  # before a verb runs
        ("numpy", "", (130,)),  # inside of a verb
        ("numpy", "raise ImportError('broken by the interruption')", (130,)),
        ("numpy", "raise OSError(5, 'broken by the interruption')", (130,)),
    ],
)
def test_ctrl_c_while_something_is_imported(
    environment: dict[str, str], tmp_path: Path, module: str, content: str, codes: tuple[int, ...]
) -> None:
    """The first import of this name finds a module that presses Ctrl-C."""
    press = "import os, signal\n"
    press += "try:\n    os.kill(os.getpid(), signal.SIGINT)\nexcept KeyboardInterrupt:\n    " + (content or "raise")
    (tmp_path / "shadow").mkdir()
    (tmp_path / "shadow" / f"{module}.py").write_text(press + "\n")
    path = os.pathsep.join([str(tmp_path / "shadow"), environment.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "newkind", "inspect", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env=environment | {"PYTHONPATH": path},
        timeout=240,
    )
    assert done.returncode in codes, done.stderr
    assert "Traceback" not in done.stderr


def test_an_ignored_ctrl_c_stays_ignored(environment: dict[str, str]) -> None:
    """As the shell does for a job in the background."""
    program = "import signal; import newkind.__main__ as m; assert signal.getsignal(2) is signal.SIG_IGN; m.main()"
    done = subprocess.run(
        ["sh", "-c", f'trap "" INT; {sys.executable} -c "{program}" --version'],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("command", ["methods", "predict RUN DATA", "predict RUN DATA --out RUN/p.csv"])
def test_closed_streams(
    environment: dict[str, str], run: Path, features: Path, closed: str, command: str, tmp_path: Path
) -> None:
    words = command.replace("RUN", str(run)).replace("DATA", str(features))
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    done = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m newkind {words} {closed}"],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=240,
    )
    loses_result = command == "predict RUN DATA" and ">&-" in closed.split()
    assert done.returncode == (2 if loses_result else 0), done.stderr
    assert "Traceback" not in done.stderr
    after = {path.name: path.read_bytes() for path in run.iterdir() if path.name != "p.csv"}
    assert after == before
    if "--out" in command:
        assert (run / "p.csv").read_text().count("\n") == 201


def test_no_file_gets_the_number_of_a_closed_stream(environment: dict[str, str], tmp_path: Path) -> None:
    """What a library writes to standard error would otherwise end up in a run."""
    lines = ["import sys", "from newkind import cli", "def app():", "    with open(sys.argv[1], 'w') as file:"]
    lines += ["        file.write(str(file.fileno()))", "cli.app = app", "cli.main()"]
    (tmp_path / "program.py").write_text("\n".join(lines))
    command = ["sh", "-c", '"$0" "$1" "$2" <&- >&- 2>&-', sys.executable, tmp_path / "program.py", tmp_path / "number"]
    subprocess.run(command, check=True, env=environment, timeout=240)
    assert int((tmp_path / "number").read_text()) > 2


def test_whether_results_can_be_written_is_checked_before_inputs_are_read(
    fails: Fails, run: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("precious")
    for out in (tmp_path / "none" / "p.csv", tmp_path / "file" / "p.csv", Path("/proc/p.csv")):
        fails("cannot-write", "predict", run, tmp_path / "missing.npz", "--out", out)
    fails("exists", "predict", run, tmp_path / "missing.npz", "--out", tmp_path / "file")
    for verb in ("tune", "estimate-k"):
        fails("cannot-write", verb, tmp_path / "clouds.npz", "--out", tmp_path / "file" / "out")
    fails("cannot-write", "bench", "methods", "--data", tmp_path / "clouds.npz", "--out", tmp_path / "file" / "out")
    assert (tmp_path / "file").read_text() == "precious"
