"""Decisions and refit on the command line."""

import csv
import json
import os
from pathlib import Path

import pytest

import newkind as nk
from newkind.runs.current_answer import current_answer
from painted_run import write_run


@pytest.fixture
def run(features: Path, tmp_path: Path) -> Path:
    nk.discover(features, tmp_path / "run", n_categories=10, report=False)
    return tmp_path / "run"


def _names(run: Path) -> set[str]:
    with open(run / "assignments.csv", newline="") as file:
        return {row["category"] for row in csv.DictReader(file)}


def test_the_journey_from_a_rename_to_a_refit_and_back(newkind, run: Path, features: Path, tmp_path: Path) -> None:
    def ok(*arguments: str | Path) -> str:
        done = newkind(*arguments)
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout

    before = _names(run)
    text = ok("rename", run, "new-01", "bee", "--dry-run")
    assert "--dry-run" in text
    assert _names(run) == before
    text = ok("rename", run, "new-01", "bee", "--author", "ada")
    assert "Next:" in text
    assert _names(run) == before - {"new-01"} | {"bee"}
    ok("merge", run, "new-02", "new-03", "--into", "new-02")
    ok("split", run, "new-02", "--parts", "2")
    files = nk.load(run)["bee"].images
    (tmp_path / "list.txt").write_text("\n".join(files[:2]) + "\n")
    ok("approve", run, "--list", tmp_path / "list.txt")
    ok("reject", run, "bee", files[3])
    ok("junk", run, files[4])
    ok("move", run, files[5], "--name", "wasp")
    ok("note", run, "look at these", "--category", "bee")
    ok("undo", run)
    ok("redo", run)
    ok("approve", run, "bee", "--name", "honeybee", "--without", files[6])
    text = ok("refit", run)
    assert "--accept" in text
    ok("refit", run, "--dry-run")
    ok("refit", run, "--accept")
    events = [json.loads(line) for line in ok("history", run, "--json").splitlines()]
    kinds = [
        "rename",
        "merge",
        "split",
        "approve",
        "reject",
        "junk",
        "move",
        "note",
        "undo",
        "redo",
        "approve",
        "refit",
    ]
    assert [event["decision"]["kind"] for event in events] == kinds
    assert events[0]["author"] == "ada"
    assert [event["number"] for event in events] == list(range(1, 13))
    assert "ada" in ok("history", run)
    assert "bee" in ok("predict", run, features)
    ok("undo", run)
    assert "honeybee" in _names(run)
    ok("report", run)


def test_bad_input_is_one_error(fails, run: Path, tmp_path: Path) -> None:
    fails("unknown-category", "rename", run, "new-77", "bee")
    fails("name-taken", "rename", run, "new-01", "new-02")
    fails("invalid-name", "rename", run, "new-01", "a\nb")
    fails("invalid-decision", "rename", run, "new-01", "")
    fails("nothing-to-do", "merge", run, "new-01")
    fails("unknown-file", "junk", run, "nothing.jpg")
    fails("missing-file", "junk", run, "--list", tmp_path / "none.txt")
    fails("invalid-decision", "junk", run)
    fails("invalid-decision", "approve", run)
    fails("nothing-to-undo", "undo", run)
    fails("nothing-to-redo", "redo", run, "--event", "3")
    fails("missing-file", "history", tmp_path)
    assert not (run / "decisions.sqlite").exists() or nk.load(run).history() == []


def test_images_are_recognised_by_their_paths(newkind, tmp_path: Path) -> None:
    """Of the data, of a folder that was added, and through links to both."""
    data, march = tmp_path / "data", tmp_path / "march"
    run = write_run(tmp_path / "run", data)
    march.mkdir()
    (tmp_path / "link").symlink_to(data)
    (tmp_path / "alias").symlink_to(march)
    text = run.assignments_file.read_text()
    for name in ("1.png", "2.png"):  # images of added folders have absolute names
        text = text.replace(f"img/2-0{name}", f"{march / name}")
    run.assignments_file.write_text(text)
    given = [
        data / "img" / "3-01.png",
        tmp_path / "link" / "img" / "3-02.png",
        march / "1.png",
        tmp_path / "alias" / "2.png",
    ]
    done = newkind("junk", run.folder, "img/3-03.png", *(os.path.relpath(path) for path in given))
    assert done.returncode == 0, done.stderr
    answer = current_answer(run)
    junk = {name for name, status in zip(answer.files, answer.status, strict=True) if status == "junk"}
    assert junk == {"img/3-01.png", "img/3-02.png", "img/3-03.png", str(march / "1.png"), str(march / "2.png")}
