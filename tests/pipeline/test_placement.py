"""Linking, copying and moving files: nothing is lost, nothing is overwritten, and every interruption can be resumed."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from error_codes import raises
from newkind.errors import RunError
from newkind.pipeline.placement import MODES, Placement, place_files
from newkind.progress import quiet


@pytest.fixture
def image(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.jpg").write_text("one")
    return tmp_path / "in" / "1.jpg"


@pytest.fixture
def other_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on another file system than the temporary folder."""
    shm = Path("/dev/shm")
    if not shm.is_dir() or shm.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second file system")
    folder = Path(tempfile.mkdtemp(dir=shm))
    yield folder
    shutil.rmtree(folder)


def place(mode: str, *pairs: tuple[Path, Path]) -> int:
    return place_files([Placement(*pair) for pair in pairs], mode, advance=quiet)


def test_a_copy_does_not_take_a_link_to_the_original_for_a_copy(image: Path, tmp_path: Path) -> None:
    target = tmp_path / "out" / "1.jpg"
    assert place("symlink", (image, target)) == 1
    with raises(RunError, "exists"):
        place("copy", (image, target))
    assert target.is_symlink()


@pytest.mark.parametrize("mode", MODES)
def test_a_file_of_the_same_size_is_not_the_same_file(image: Path, tmp_path: Path, mode: str) -> None:
    target = tmp_path / "out" / "1.jpg"
    target.parent.mkdir()
    target.write_text("two")
    with raises(RunError, "exists"):
        place(mode, (image, target))
    assert (image.read_text(), target.read_text()) == ("one", "two")


def test_relative_links_are_moved_and_still_lead_to_their_files(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "in" / "deep").mkdir(parents=True)
    (tmp_path / "store" / "1.jpg").write_text("one")
    link = tmp_path / "in" / "deep" / "a.jpg"
    link.symlink_to("../../store/1.jpg")
    target = tmp_path / "out" / "a.jpg"  # at another depth, where the same relative link leads nowhere
    assert place("move", (link, target)) == 1
    assert target.read_text() == "one"
    assert not os.path.lexists(link)
    assert place("move", (link, target)) == 0


@pytest.mark.parametrize("link_first", [False, True])
def test_a_link_to_a_file_that_is_moved_too(image: Path, tmp_path: Path, link_first: bool) -> None:
    link = image.with_name("a.jpg")
    link.symlink_to("1.jpg")
    pairs = [(image, tmp_path / "out" / "1.jpg"), (link, tmp_path / "out" / "a.jpg")]
    pairs = pairs[::-1] if link_first else pairs
    assert place("move", *pairs) == 2
    assert [target.read_text() for _, target in pairs] == ["one", "one"]
    assert place("move", *pairs) == 0
    assert list(image.parent.iterdir()) == []


def test_a_link_to_a_file_that_an_interrupted_call_has_moved(image: Path, tmp_path: Path) -> None:
    link = image.with_name("a.jpg")
    link.symlink_to("1.jpg")
    pairs = [(image, tmp_path / "out" / "1.jpg"), (link, tmp_path / "out" / "a.jpg")]
    (tmp_path / "out").mkdir()
    image.rename(tmp_path / "out" / "1.jpg")
    assert place("move", *pairs) == 1
    assert (tmp_path / "out" / "a.jpg").read_text() == "one"


def test_one_folder_under_two_names(image: Path, tmp_path: Path) -> None:
    (tmp_path / "again").symlink_to("in")
    pairs = [(image, tmp_path / "out" / "1.jpg"), (tmp_path / "again" / "1.jpg", tmp_path / "out" / "1-2.jpg")]
    assert place("move", *pairs) == 1
    assert place("move", *pairs) == 0
    assert (tmp_path / "out" / "1.jpg").read_text() == "one"


def test_a_move_that_was_killed_between_copy_and_unlink(image: Path, tmp_path: Path) -> None:
    target = tmp_path / "out" / "1.jpg"
    target.parent.mkdir()
    target.write_text("one")
    assert place("move", (image, target)) == 1
    assert not image.exists()
    assert target.read_text() == "one"


def test_a_move_that_was_killed_between_linking_and_unlink(image: Path, tmp_path: Path) -> None:
    target = tmp_path / "out" / "1.jpg"
    target.parent.mkdir()
    os.link(image, target)
    assert place("move", (image, target)) == 1
    assert not image.exists()
    assert target.read_text() == "one"


@pytest.mark.parametrize("mode", ["copy", "move"])
def test_a_file_that_is_in_place_stays_there(image: Path, tmp_path: Path, mode: str) -> None:
    (tmp_path / "again").symlink_to("in")
    assert place(mode, (image, tmp_path / "again" / "1.jpg")) == 0
    assert image.read_text() == "one"


def test_hard_links_are_two_files(image: Path, tmp_path: Path) -> None:
    other = image.with_name("2.jpg")
    os.link(image, other)
    assert place("move", (image, tmp_path / "out" / "1.jpg"), (other, tmp_path / "out" / "2.jpg")) == 2
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["1.jpg", "2.jpg"]


def test_a_move_to_another_disk_syncs_the_copy_and_its_folders_before_it_removes_the_original(
    image: Path, other_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[tuple[str, str]] = []
    sync, unlink = os.fsync, os.unlink

    def synced(descriptor: int) -> None:
        events.append(("sync", os.readlink(f"/proc/self/fd/{descriptor}")))
        sync(descriptor)

    def removed(path: str, **more: int) -> None:
        events.append(("unlink", os.fspath(path)))
        unlink(path, **more)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "unlink", removed)
    os.utime(image, ns=(5, 10**18 + 1))
    target = other_disk / "out" / "k" / "1.jpg"
    assert place("move", (image, target)) == 1
    end = events.index(("unlink", str(image)))
    before = {path for what, path in events[:end] if what == "sync"}
    assert {str(target) + ".partial", str(target.parent), str(target.parent.parent), str(other_disk)} <= before
    assert target.read_text() == "one"
    assert target.stat().st_mtime_ns == 10**18 + 1
    assert [path.name for path in target.parent.iterdir()] == ["1.jpg"]


@pytest.mark.parametrize("mode", MODES)
def test_a_target_that_appears_in_the_meantime_is_not_overwritten(image: Path, tmp_path: Path, mode: str) -> None:
    """Another file gets the name after everything was checked and before the first file is placed."""
    two = image.with_name("2.jpg")
    two.write_text("two")
    plan = [Placement(image, tmp_path / "out" / "1.jpg"), Placement(two, tmp_path / "out" / "2.jpg")]

    def interfere(_: int) -> None:
        (tmp_path / "out" / "2.jpg").write_text("foreign")

    with raises(RunError, "cannot-write"):
        place_files(plan, mode, advance=interfere)
    assert (tmp_path / "out" / "2.jpg").read_text() == "foreign"
    assert two.read_text() == "two"
