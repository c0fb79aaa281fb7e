"""Files of a run into one folder per category: every file once, nothing overwritten, repeatable."""

from pathlib import Path

import pytest

from error_codes import raises
from newkind.errors import RunError
from newkind.pipeline.export import MODES, carry_out, plan_sorting
from newkind.progress import quiet
from newkind.runs.assignment import Assignment, assignments_csv, parse_assignments
from newkind.runs.run import Run


def lines(*pairs: tuple[str, str]) -> list[Assignment]:
    return [Assignment(file, category, "new", 0.9, "x", 0.1) for file, category in pairs]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("a/1.jpg", "b/1.jpg", "b/2.jpg", "c/1.JPG"):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_text(name)
    return tmp_path / "in"


@pytest.mark.parametrize("mode", MODES)
def test_every_file_arrives_once_and_the_command_can_be_repeated(root: Path, tmp_path: Path, mode: str) -> None:
    plan = plan_sorting(
        lines(("a/1.jpg", "k"), ("b/1.jpg", "k"), ("c/1.JPG", "k"), ("b/2.jpg", "new-01")), root, tmp_path / "out"
    )
    assert carry_out(plan, mode, advance=quiet) == 4
    found = {
        p.relative_to(tmp_path / "out").as_posix(): p.read_text() for p in (tmp_path / "out").rglob("*") if p.is_file()
    }
    assert found == {"k/1.jpg": "a/1.jpg", "k/1-2.jpg": "b/1.jpg", "k/1-3.JPG": "c/1.JPG", "new-01/2.jpg": "b/2.jpg"}
    assert (root / "a" / "1.jpg").exists() == (mode != "move")
    assert carry_out(plan, mode, advance=quiet) == 0


def test_nothing_is_overwritten(root: Path, tmp_path: Path) -> None:
    (tmp_path / "out" / "k").mkdir(parents=True)
    (tmp_path / "out" / "k" / "1.jpg").write_text("precious")
    plan = plan_sorting(lines(("b/2.jpg", "k"), ("a/1.jpg", "k")), root, tmp_path / "out")
    with raises(RunError, "exists"):
        carry_out(plan, "move", advance=quiet)
    assert (tmp_path / "out" / "k" / "1.jpg").read_text() == "precious"
    assert (root / "b" / "2.jpg").exists()


def test_category_names_stay_inside_and_apart(root: Path, tmp_path: Path) -> None:
    plan = plan_sorting(
        lines(("a/1.jpg", "../../etc"), ("b/1.jpg", "x/y"), ("b/2.jpg", "x_y"), ("c/1.JPG", "..")),
        root,
        tmp_path / "out",
    )
    folders = [item.target.parent for item in plan]
    assert len(set(folders)) == 4
    assert all(folder.parent == tmp_path / "out" for folder in folders)


def test_unsure_images_share_a_folder_beside_a_category_of_that_name(root: Path, tmp_path: Path) -> None:
    given = [
        Assignment("a/1.jpg", "Unsure", "known", 0.9, "x", 0.1),
        Assignment("b/1.jpg", "k", "unsure", 0.3, "x", 0.2),
        Assignment("b/2.jpg", "new-01", "unsure", 0.3, "x", 0.2),
        Assignment("c/1.JPG", "k", "known", 0.9, "x", 0.1),
    ]
    plan = plan_sorting(given, root, tmp_path)
    assert [item.target.parent.name for item in plan] == ["Unsure-2", "unsure", "unsure", "k"]


def test_a_carriage_return_and_a_comma_in_a_name_survive(tmp_path: Path) -> None:
    run = Run(tmp_path)
    held = lines(
        ("one\rtwo.jpg", 'a "b", c'), ("new\nline.jpg", "k"), (b"caf\xe9.jpg".decode("utf-8", "surrogateescape"), "k")
    )
    run.write_text(run.assignments_file, assignments_csv(held))
    assert parse_assignments(run.assignments_file) == held


def test_a_source_that_is_gone(root: Path, tmp_path: Path) -> None:
    plan = plan_sorting(lines(("a/9.jpg", "k")), root, tmp_path / "out")
    with raises(RunError, "missing-file"):
        carry_out(plan, "copy", advance=quiet)
