"""Files of a run into one folder per category: every file once, nothing overwritten, repeatable."""

from pathlib import Path

import pytest

from error_codes import raises
from newkind.errors import RunError
from newkind.pipeline.placement import place_files
from newkind.pipeline.sorting import MODES, plan_sorting
from newkind.progress import quiet
from newkind.runs.assignment import Assignment, assignments_csv, parse_assignments
from newkind.runs.run import Run
from newkind.runs.run_files import RunFiles


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
        lines(("a/1.jpg", "k"), ("b/1.jpg", "k"), ("c/1.JPG", "k"), ("b/2.jpg", "new-01")),
        RunFiles(root),
        tmp_path / "out",
    )
    steps: list[int] = []
    assert place_files(plan, mode, advance=lambda n=1: steps.append(n)) == 4
    assert sum(steps) == 4  # progress is shown
    found = {
        p.relative_to(tmp_path / "out").as_posix(): p.read_text() for p in (tmp_path / "out").rglob("*") if p.is_file()
    }
    assert found == {"k/1.jpg": "a/1.jpg", "k/1-2.jpg": "b/1.jpg", "k/1-3.JPG": "c/1.JPG", "new-01/2.jpg": "b/2.jpg"}
    assert (root / "a" / "1.jpg").exists() == (mode != "move")
    assert place_files(plan, mode, advance=quiet) == 0


def test_nothing_is_overwritten(root: Path, tmp_path: Path) -> None:
    (tmp_path / "out" / "k").mkdir(parents=True)
    (tmp_path / "out" / "k" / "1.jpg").write_text("precious")
    plan = plan_sorting(lines(("b/2.jpg", "k"), ("a/1.jpg", "k")), RunFiles(root), tmp_path / "out")
    with raises(RunError, "exists"):
        place_files(plan, "move", advance=quiet)
    assert (tmp_path / "out" / "k" / "1.jpg").read_text() == "precious"
    assert (root / "b" / "2.jpg").exists()


def test_category_names_stay_inside_and_apart(root: Path, tmp_path: Path) -> None:
    plan = plan_sorting(
        lines(("a/1.jpg", "../../etc"), ("b/1.jpg", "x/y"), ("b/2.jpg", "x_y"), ("c/1.JPG", "..")),
        RunFiles(root),
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
    plan = plan_sorting(given, RunFiles(root), tmp_path)
    assert [item.target.parent.name for item in plan] == ["Unsure-2", "unsure", "unsure", "k"]


def test_a_carriage_return_and_a_comma_in_a_name_survive(tmp_path: Path) -> None:
    run = Run(tmp_path)
    held = lines(
        ("one\rtwo.jpg", 'a "b", c'), ("new\nline.jpg", "k"), (b"caf\xe9.jpg".decode("utf-8", "surrogateescape"), "k")
    )
    run.write_text(run.assignments_file, assignments_csv(held))
    assert parse_assignments(run.assignments_file) == held


def test_a_source_that_is_gone(root: Path, tmp_path: Path) -> None:
    plan = plan_sorting(lines(("a/9.jpg", "k")), RunFiles(root), tmp_path / "out")
    with raises(RunError, "missing-file"):
        place_files(plan, "copy", advance=quiet)


@pytest.mark.parametrize(
    "name", [".", "", "..", "../x.jpg", "/etc/hostname", "a/../../x.jpg", "a/1.jpg\0", "/", "a/.."]
)
def test_a_run_from_elsewhere_reaches_nothing_outside_its_root(root: Path, tmp_path: Path, name: str) -> None:
    with raises(RunError, "outside-root"):
        plan_sorting(lines((name, "k")), RunFiles(root), tmp_path / "out")


def test_the_user_may_name_a_folder_that_contains_all_images(root: Path) -> None:
    outside = RunFiles(root / "a", data=root)
    assert outside.path("../b/2.jpg") == root / "b" / "2.jpg"
    assert outside.path(str(root / "b" / "2.jpg")) == root / "b" / "2.jpg"
    with raises(RunError, "outside-root"):
        outside.path("../../2.jpg")


@pytest.mark.parametrize("name", ["thesis.doc", "folder"])
def test_only_images_are_touched(root: Path, tmp_path: Path, name: str) -> None:
    (root / "thesis.doc").write_text("precious")
    (root / "folder").mkdir()
    plan = plan_sorting(lines(("b/2.jpg", "k"), (name, "k")), RunFiles(root), tmp_path / "out")
    with raises(RunError, "not-an-image"):
        place_files(plan, "move", advance=quiet)
    assert (root / name).exists()
    assert not (tmp_path / "out").exists()


def test_an_image_without_a_usual_suffix_is_known_by_its_content(tmp_path: Path, make_image) -> None:
    make_image(tmp_path / "in" / "1.png").rename(tmp_path / "in" / "photo")
    plan = plan_sorting(lines(("photo", "k")), RunFiles(tmp_path / "in"), tmp_path / "out")
    assert place_files(plan, "move", advance=quiet) == 1


@pytest.mark.parametrize(
    "category", ["x" * 300, "ä" * 200, "CON", "nul.txt", "com1", "a" * 199 + ". .", "\ud800", "LPT²"]
)
def test_folders_have_names_that_every_system_allows(root: Path, tmp_path: Path, category: str) -> None:
    plan = plan_sorting(lines(("a/1.jpg", category), ("b/1.jpg", f"{category}y")), RunFiles(root), tmp_path / "out")
    assert place_files(plan, "copy", advance=quiet) == 2
    names = [item.target.parent.name for item in plan]
    assert len(set(names)) == 2
    for name in names:
        assert name.partition(".")[0].lower() not in ("con", "nul", "com1", "lpt²")
        assert len(name.encode()) <= 255
        assert name == name.strip(". ")


def test_equal_names_that_are_as_long_as_possible(tmp_path: Path) -> None:
    name = "n" * 251 + ".jpg"
    for folder in ("a", "b", "c"):
        (tmp_path / "in" / folder).mkdir(parents=True)
        (tmp_path / "in" / folder / name).write_text(folder)
    plan = plan_sorting(
        lines(*((f"{folder}/{name}", "k") for folder in "abc")), RunFiles(tmp_path / "in"), tmp_path / "out"
    )
    assert place_files(plan, "copy", advance=quiet) == 3
    assert sorted(path.read_text() for path in (tmp_path / "out" / "k").iterdir()) == ["a", "b", "c"]


def test_the_plan_of_many_equal_names_is_linear(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Comparisons of names are counted, because time is not asserted in a test."""
    from newkind.pipeline import sorting

    calls = 0
    same = sorting._same

    def counted(name: str) -> str:
        nonlocal calls
        calls += 1
        return same(name)

    monkeypatch.setattr(sorting, "_same", counted)
    many = lines(*((f"{i}/1.jpg", f"k{i % 3}" if i % 2 else "x/y" * (i % 5)) for i in range(2000)))
    plan = plan_sorting(many, RunFiles(tmp_path), tmp_path / "out")
    assert len({item.target for item in plan}) == 2000
    assert calls < 10 * 2000
