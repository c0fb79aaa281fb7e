"""`discover`, `predict`, `sort`, `evaluate`, `doctor`, run as a user runs them."""

import csv
import json
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from newkind.runs.assignments import COLUMNS

SMALL = [
    "--backbone",
    "vit_tiny_patch16_224",
    "--random-weights",
    "--image-size",
    "32",
    "--trunk-precision",
    "fp32",
    "--views",
    "3",
    "--batch-size",
    "16",
]
Newkind = Fails = Callable[..., subprocess.CompletedProcess[str]]
LAUNCH = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
IN_TWO_PROCESSES = [*LAUNCH, "-m", "newkind", "discover"]


def read_csv(path: Path) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def same_category(predicted: dict[str, str], row: dict[str, str]) -> None:
    """An unlabelled image gets the same category as in the run, unless rounding decides between two of them."""
    if row["status"] != "labelled" and float(row["confidence"]) - float(row["second_confidence"]) > 0.05:
        assert predicted["category"] == row["category"]


def test_the_whole_journey(newkind: Newkind, shapes: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    dry = newkind("discover", shapes, "--out", run, *SMALL, "--epochs", "3", "--dry-run")
    assert dry.returncode == 0, dry.stderr
    rows = {line.split()[0]: line.split() for line in dry.stdout.splitlines()[1:4]}
    assert list(rows) == ["quick", "standard", "thorough"]
    assert [row[1] for row in rows.values()] == ["64", "192", "320"]  # thorough: 3 + 1 views, and the first answer's
    assert rows["thorough"][4] == "3"
    assert not run.exists()

    done = newkind("discover", shapes, "--out", run, *SMALL, "--epochs", "3")
    assert done.returncode == 0, done.stderr
    assert "All" in done.stdout
    assert "newkind review" in done.stdout
    assert {p.name for p in run.iterdir()} == {
        ".answer.lock",
        ".lock",
        "assignments.csv",
        "categories.json",
        "checkpoint.safetensors",
        "config.json",
        "environment.json",
        "digests.npy",
        "features.npy",
        "metrics.jsonl",
        "model.json",
        "model.safetensors",
        "report.html",
        "scores.json",
    }
    rows = read_csv(run / "assignments.csv")
    assert tuple(rows[0]) == COLUMNS
    assert len(rows) == 64
    by_file = {row["file"]: row for row in rows}
    assert by_file["img/red01.png"]["status"] == "labelled"
    assert by_file["img/red01.png"]["category"] == "red"
    assert {row["status"] for row in rows} <= {"labelled", "known", "new"}
    for row in rows:
        assert (row["status"] == "new") == row["category"].startswith("new-")
    metrics = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [row["epoch"] for row in metrics] == [1, 2, 3]
    assert "accuracy/all" in metrics[-1]

    again = newkind("discover", shapes, "--out", run, *SMALL, "--epochs", "3")
    assert again.returncode == 0
    assert "epoch 3 of 3" in again.stderr

    predicted = newkind("predict", run, shapes / "img", "--out", tmp_path / "p.csv")
    assert predicted.returncode == 0, predicted.stderr
    unseen = read_csv(tmp_path / "p.csv")
    assert tuple(unseen[0]) == COLUMNS
    assert all(0 <= float(row["novelty"]) <= 1 for row in unseen)
    for row in unseen:
        same_category(row, by_file["img/" + Path(row["file"]).name])
    assert newkind("predict", run, shapes / "img", "--out", tmp_path / "p.csv").returncode == 2  # never overwrites

    assert "64 files" in newkind("sort", run, "--to", tmp_path / "sorted", "--mode", "symlink", "--dry-run").stdout
    assert not (tmp_path / "sorted").exists()
    assert newkind("sort", run, "--to", tmp_path / "sorted", "--mode", "symlink").returncode == 0
    assert (tmp_path / "sorted" / "red" / "red01.png").resolve() == (shapes / "img" / "red01.png").resolve()
    assert "0 files placed, 64" in newkind("sort", run, "--to", tmp_path / "sorted", "--mode", "symlink").stdout

    scored = newkind("evaluate", run, "--truth", shapes / "metadata.csv", "--json")
    assert scored.returncode == 0, scored.stderr
    own = json.loads((run / "scores.json").read_text())
    for name in ("accuracy", "by_name"):
        assert json.loads(scored.stdout)[name] == pytest.approx(own[name], nan_ok=True)


# The command line in a process that kills itself: at the given moment, always the same one, with the real signal.
KILLED = """
import os, signal
from newkind import distributed
from newkind.cli import main
from newkind.runs.run import Run

def killed_at(call, n):
    def counted(*arguments, **more):
        nonlocal n
        n -= 1
        if n == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*arguments, **more)
    return counted

if "RANK" not in os.environ:
    from newkind.training import trainer
    if "ROW" in os.environ:
        Run.append_metrics = killed_at(Run.append_metrics, 4)
    else:
        trainer.save_checkpoint = killed_at(trainer.save_checkpoint, 4)
elif os.environ["RANK"] == "1":
    distributed.average_gradients = killed_at(distributed.average_gradients, 10)
main()
"""


@pytest.fixture
def killed(tmp_path: Path) -> str:
    """A program that runs `newkind` and is killed in epoch 4; in two processes the second one, within epoch 3."""
    program = tmp_path / "killed.py"
    program.write_text(KILLED)
    return str(program)


def test_images_below_a_confidence_are_unsure(newkind: Newkind, fails: Fails, shapes: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    done = newkind("discover", shapes, "--out", run, *SMALL, "--epochs", "1", "--min-confidence", "1")
    assert done.returncode == 0, done.stderr
    assert "Unsure images" in done.stdout
    assert "alibrated" in done.stdout
    rows = read_csv(run / "assignments.csv")
    n_unsure = sum(row["status"] == "unsure" for row in rows)
    assert n_unsure > 0
    assert {row["status"] for row in rows if float(row["confidence"]) < 1} <= {"labelled", "unsure"}
    assert json.loads((run / "scores.json").read_text())["sure"]["coverage"] < 1
    assert newkind("sort", run, "--to", tmp_path / "sorted", "--mode", "symlink").returncode == 0
    assert len(list((tmp_path / "sorted" / "unsure").iterdir())) == n_unsure
    predicted = newkind("predict", run, shapes / "img", "--out", tmp_path / "p.csv", "--min-confidence", "1")
    assert predicted.returncode == 0, predicted.stderr
    assert "unsure" in {row["status"] for row in read_csv(tmp_path / "p.csv")}
    assert "Sure images" in newkind("evaluate", run, "--truth", shapes / "metadata.csv").stdout
    fails("out-of-range", "predict", run, shapes / "img", "--min-confidence", "2")


@pytest.mark.parametrize("in_row", [False, True])
def test_kill_dash_nine_and_the_same_command_end_with_the_same_bytes(
    newkind: Newkind, environment: dict[str, str], shapes: Path, tmp_path: Path, killed: str, in_row: bool
) -> None:
    arguments = ["discover", str(shapes), *SMALL, "--epochs", "6", "--checkpoint-seconds", "0"]
    assert newkind(*arguments, "--out", tmp_path / "whole").returncode == 0
    torn = tmp_path / "torn"
    command = [sys.executable, killed, *arguments, "--out", str(torn)]
    # Before or after the row of epoch 4 is written, which is before its checkpoint.
    row = {"ROW": "1"} if in_row else {}
    process = subprocess.run(command, capture_output=True, text=True, check=False, env=environment | row, timeout=300)
    assert process.returncode == -signal.SIGKILL, process.stderr
    assert (torn / "metrics.jsonl").read_text().count("\n") == (3 if in_row else 4)
    assert json.loads((torn / "config.json").read_text())["answer"] == "first"
    done = newkind(*arguments, "--out", torn)
    assert done.returncode == 0, done.stderr
    assert "epoch 3 of 6" in done.stderr
    rows = [json.loads(line) for line in (torn / "metrics.jsonl").read_text().splitlines()]
    assert [row["epoch"] for row in rows] == [1, 2, 3, 4, 5, 6]
    for name in ("assignments.csv", "categories.json"):
        assert (torn / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_ctrl_c_after_the_first_answer_leaves_a_usable_run(
    newkind: Newkind, environment: dict[str, str], shapes: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    command = [
        sys.executable,
        "-m",
        "newkind",
        "discover",
        str(shapes),
        "--out",
        str(run),
        *SMALL,
        "--epochs",
        "100000",
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    assert process.stderr is not None
    first = next(line for line in process.stderr if line.startswith("First answer: "))
    process.send_signal(signal.SIGINT)
    printed, _ = process.communicate(timeout=300)
    assert process.returncode == 130
    assert str(run) in printed
    assert first.split(": ")[1].strip() == str(run / "report.html")
    assert (run / "report.html").stat().st_size > 10_000
    assert len(read_csv(run / "assignments.csv")) == 64
    assert newkind("predict", run, shapes / "img" / "red00.png").returncode == 0
    assert newkind("sort", run, "--to", tmp_path / "sorted", "--mode", "symlink").returncode == 0
    assert newkind("report", run).returncode == 0
    assert newkind("evaluate", run, "--truth", shapes / "metadata.csv").returncode == 0


def test_two_processes_score_once_over_everything(shapes: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    out = tmp_path / "two"
    done = subprocess.run(
        [*IN_TWO_PROCESSES, str(shapes), "--out", str(out), *SMALL[:-1], "8", "--epochs", "2", "--global-losses"],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert len(read_csv(out / "assignments.csv")) == 64
    assert json.loads((out / "environment.json").read_text())["processes"] == 2
    assert json.loads((out / "scores.json").read_text())["n_samples"] == 48
    assert done.stdout.count("Results:") == 1


@pytest.mark.parametrize(
    ("extra", "code"),
    [
        (["--n-categories", "1"], "out-of-range"),
        (["--n-categories", "9", "--at-most", "12"], "conflict"),
        (["--epochs", "-1"], "out-of-range"),
        (["--recipe", "release", "--epochs", "0"], "needs-training"),
        (["--recipe", "release", "--effort", "quick"], "needs-training"),
        (["--method", "gcd", "--effort", "standard"], "needs-training"),
        (["--effort", "heroic"], "unknown-choice"),
        (["--recipe", "secret"], "unknown-recipe"),
        (["--resume"], "nothing-to-resume"),
        (["--device", "quantum"], "unknown-device"),
        (["--image-size", "33"], "image-size"),
        (["--views", "1000000000", "--dry-run"], "out-of-range"),
    ],
)
def test_bad_settings(fails: Fails, shapes: Path, tmp_path: Path, extra: list[str], code: str) -> None:
    fails(code, "discover", shapes, "--out", tmp_path / "run", *SMALL, *extra)
    assert not (tmp_path / "run").exists()


def test_errors_name_options(fails: Fails, shapes: Path, tmp_path: Path) -> None:
    done = fails("out-of-range", "discover", shapes, "--out", tmp_path / "run", "--batch-size", "1")
    assert "--batch-size" in done.stderr
    assert "batch_size" not in done.stderr


def test_bad_folders_and_data(newkind: Newkind, fails: Fails, shapes: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.doc").write_text("precious")
    mine = ["discover", shapes, "--out", tmp_path / "mine", *SMALL, "--epochs", "1", "--overwrite"]
    fails("not-a-run", *mine)
    (tmp_path / "mine" / "config.json").write_text('{"my": "settings"}')
    fails("not-a-run", *mine)
    assert (tmp_path / "mine" / "thesis.doc").read_text() == "precious"

    run = tmp_path / "run"
    assert newkind("discover", shapes, "--out", run, *SMALL, "--epochs", "1").returncode == 0
    (run / "notes.txt").write_text("kept")
    fails("other-run", "discover", shapes, "--out", run, *SMALL, "--epochs", "2")
    assert newkind("discover", shapes, "--out", run, *SMALL, "--epochs", "2", "--overwrite").returncode == 0
    assert (run / "notes.txt").read_text() == "kept"
    config = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps(config | {"format": 99, "newkind": "9.9"}))
    assert "9.9" in fails("unknown-format", "predict", run, shapes / "img").stderr

    table = (shapes / "metadata.csv").read_text()
    (shapes / "metadata.csv").write_text(table.replace(",red,", ",,").replace(",green,", ",,"))
    fails("no-labels", "discover", shapes, "--out", tmp_path / "no", *SMALL)
    fails("missing-file", "predict", tmp_path / "none", shapes)
    fails("missing-file", "sort", tmp_path / "none", "--to", tmp_path / "x", "--mode", "copy")


def test_fewer_images_than_a_batch_and_one_labelled_image_of_a_class(
    newkind: Newkind, shapes: Path, tmp_path: Path
) -> None:
    rows = [line for line in (shapes / "metadata.csv").read_text().splitlines() if "0" in line or "file" in line][:21]
    (shapes / "metadata.csv").write_text("\n".join(rows) + "\n")
    done = newkind(
        "discover", shapes, "--out", tmp_path / "run", *SMALL[:-1], "128", "--epochs", "1", "--n-categories", "4"
    )
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "run" / "config.json").read_text())["config"]["training"]["batch_size"] < 128


def test_what_is_left_after_broken_images(newkind: Newkind, fails: Fails, shapes: Path, tmp_path: Path) -> None:
    (shapes / "img" / "blue00.png").write_text("no picture")
    done = newkind("discover", shapes, "--out", tmp_path / "run", *SMALL[:-1], "64", "--epochs", "1")
    assert done.returncode == 0, done.stderr
    assert "img/blue00.png" in done.stderr
    assert json.loads((tmp_path / "run" / "config.json").read_text())["config"]["training"]["batch_size"] == 63
    for path in (shapes / "img").glob("red*"):
        path.write_text("no picture")
    fails("unreadable-class", "discover", shapes, "--out", tmp_path / "run2", *SMALL, "--epochs", "1")
    assert not (tmp_path / "run2").exists()


def test_a_truth_without_new_classes(newkind: Newkind, shapes: Path, tmp_path: Path) -> None:
    rows = [
        row for row in (shapes / "metadata.csv").read_text().splitlines() if "blue" not in row and "grey" not in row
    ]
    (shapes / "metadata.csv").write_text("\n".join(rows) + "\n")
    done = newkind("discover", shapes, "--out", tmp_path / "run", *SMALL, "--epochs", "1")
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "run" / "scores.json").read_text())["accuracy"]["new"] is None


def test_other_features_are_another_run(newkind: Newkind, fails: Fails, tmp_path: Path) -> None:
    labels = np.array([0, 1, -1, -1] * 8)
    for seed in (0, 1):
        np.savez(tmp_path / f"{seed}.npz", features=np.random.default_rng(seed).normal(size=(32, 6)), labels=labels)
    settings = ["--out", tmp_path / "run", "--epochs", "1", "--batch-size", "16", "--n-categories", "3"]
    assert newkind("discover", tmp_path / "0.npz", *settings).returncode == 0
    fails("other-run", "discover", tmp_path / "1.npz", *settings)
    assert newkind("predict", tmp_path / "run", tmp_path / "1.npz").stdout.count("\n") == 33
    both = newkind("predict", tmp_path / "run", tmp_path / "0.npz", tmp_path / "1.npz")
    assert both.stdout.count("\n") == 65  # every argument counts
    np.savez(tmp_path / "wide.npz", features=np.ones((3, 7)), labels=[0, 1, -1])
    fails("wrong-input", "predict", tmp_path / "run", tmp_path / "wide.npz")


def test_predict_has_one_line_per_image(newkind: Newkind, fails: Fails, shapes: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert newkind("discover", shapes, "--out", run, *SMALL, "--epochs", "1", "--no-report").returncode == 0
    good, broken = shapes / "img" / "red00.png", tmp_path / "broken.png"
    broken.write_text("no picture")
    done = newkind("predict", run, good, broken, good)
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(done.stdout.splitlines()))
    assert [row["file"] for row in rows] == [str(good), str(broken), str(good)]
    assert [row["status"] == "unreadable" for row in rows] == [False, True, False]
    assert rows[1]["category"] == ""
    assert rows[0] == rows[2]
    assert "broken.png" in done.stderr
    fails("nothing-readable", "predict", run, broken)
    fails("missing-file", "predict", run, tmp_path / "nowhere.png")

    from newkind import load

    lines = load(run).predict(good, broken, tmp_path / "nowhere.png", good)
    assert [line.status == "unreadable" for line in lines] == [False, True, True, False]
    assert lines[0].category == rows[0]["category"]


def test_a_disk_that_fills_up_loses_nothing(
    shapes: Path, tmp_path: Path, environment: dict[str, str], newkind: Newkind
) -> None:
    """No file may grow beyond a limit, as on a full disk: first the tokens fail, then the checkpoint."""
    run = tmp_path / "run"
    command = [
        sys.executable,
        "-m",
        "newkind",
        "discover",
        str(shapes),
        "--out",
        str(run),
        *SMALL,
        "--epochs",
        "2",
        "--recipe",
        "release",
    ]

    def limited(megabytes: float) -> subprocess.CompletedProcess[str]:
        size = int(megabytes * 2**20)
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            env=environment,
            timeout=300,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
        )

    done = limited(0.2)
    assert done.returncode == 2
    assert "[cannot-write]" in done.stderr
    assert not run.exists()
    assert "Traceback" not in done.stderr
    done = limited(8)
    assert done.returncode == 2
    assert "[cannot-write]" in done.stderr
    assert "checkpoint.safetensors" in done.stderr
    assert "Traceback" not in done.stderr
    assert newkind(*command[3:]).returncode == 0
    assert len(read_csv(run / "assignments.csv")) == 64


def test_a_process_that_dies_ends_the_job_plainly_and_the_same_command_resumes(
    shapes: Path, tmp_path: Path, environment: dict[str, str], killed: str
) -> None:
    out = tmp_path / "run"
    arguments = ["discover", str(shapes), "--out", str(out), *SMALL[:-1], "8", "--epochs", "4"]
    arguments += ["--checkpoint-seconds", "0"]

    def launched(*program: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*LAUNCH, *program, *arguments], capture_output=True, text=True, check=False, env=environment, timeout=300
        )

    done = launched(killed)
    assert done.returncode != 0
    assert "[process-died]" in done.stderr
    assert json.loads((out / "config.json").read_text())["answer"] == "first"
    again = launched("-m", "newkind")
    assert again.returncode == 0, again.stderr
    assert "epoch 2 of 4" in again.stderr


def test_doctor(newkind: Newkind) -> None:
    done = newkind("doctor")
    assert "torch" in done.stdout
    assert "Cache directory" in done.stdout
    assert "Memory" in done.stdout
    assert "Traceback" not in done.stderr
