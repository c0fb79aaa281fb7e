"""Files are written as a whole or not at all."""

import errno
import os
from contextlib import suppress
from pathlib import Path

import pytest

from error_codes import raises
from newkind import atomic
from newkind.errors import CacheError, RunError


def test_a_file_is_replaced(tmp_path: Path) -> None:
    atomic.write_text(tmp_path / "a.txt", "one")
    atomic.write_text(tmp_path / "a.txt", "two")
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "two"


def write_half(path: Path, problem: Exception) -> None:
    with atomic.replacing(path, error=CacheError) as file:
        file.write(b"half")
        raise problem


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(KeyError):
        write_half(path, KeyError())
    with raises(CacheError, "cannot-write"):
        write_half(path, OSError(28, "No space left on device"))
    assert path.read_text() == "old"
    assert [item.name for item in tmp_path.iterdir()] == ["a.txt"]
    with raises(RunError, "cannot-write"):
        atomic.write_text(tmp_path / "none" / "a.txt", "x")


def test_names_keep_their_bytes_and_json_has_no_nan(tmp_path: Path) -> None:
    name = b"caf\xe9.jpg".decode("utf-8", "surrogateescape")
    assert atomic.to_bytes(name) == b"caf\xe9.jpg"
    assert atomic.to_bytes("\ud800") == b"\\ud800"
    with pytest.raises(ValueError, match="JSON"):
        atomic.write_json(tmp_path / "a.json", {"a": float("nan")})


@pytest.mark.parametrize("plant", [os.symlink, os.link])
def test_a_planted_link_is_not_written_through(tmp_path: Path, plant) -> None:
    (tmp_path / "precious").write_text("precious")
    plant(tmp_path / "precious", tmp_path / "a.txt.partial")
    atomic.write_text(tmp_path / "a.txt", "new")
    assert (tmp_path / "precious").read_text() == "precious"
    assert (tmp_path / "a.txt").read_text() == "new"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "precious"]


def test_a_file_may_be_required_to_be_new(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old")
    with raises(RunError, "cannot-write"), atomic.replacing(tmp_path / "a.txt", overwrite=False) as file:
        file.write(b"new")
    with atomic.replacing(tmp_path / "b.txt", overwrite=False) as file:
        file.write(b"new")
    assert (tmp_path / "a.txt").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "b.txt"]


def test_two_writers_of_one_file_never_show_a_half(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    with raises(RunError, "cannot-write"), atomic.replacing(path) as slow:
        slow.write(b"ha")
        with atomic.replacing(path) as quick:
            quick.write(b"whole")
    assert path.read_text() == "whole"
    assert [item.name for item in tmp_path.iterdir()] == ["a.txt"]


def test_the_longest_name(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 255)
    atomic.write_text(path, "one")
    assert path.read_text() == "one"


def test_files_have_the_usual_permissions(tmp_path: Path) -> None:
    from newkind.training.checkpoint import save_tensors

    (tmp_path / "usual").touch()
    atomic.write_text(tmp_path / "text", "one")
    atomic.append_text(tmp_path / "rows", "one")
    save_tensors(tmp_path / "tensors", {}, {})
    assert len({path.stat().st_mode for path in tmp_path.iterdir()}) == 1
    assert len(list(tmp_path.iterdir())) == 4


def test_advice_fits_the_reason(tmp_path: Path) -> None:
    for number, word in ((28, "space"), (13, "permissions"), (30, "read-only"), (5, "disk")):
        with raises(RunError, "cannot-write") as caught, atomic.write_errors(tmp_path):
            raise OSError(number, os.strerror(number))
        assert word in caught.value.fix
        assert ("space" in caught.value.fix) == (number == 28)


def test_a_row_is_appended_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    atomic.append_text(path, "one\n")
    atomic.append_text(path, "two\n")
    assert path.read_text() == "one\ntwo\n"
    path.unlink()
    path.symlink_to(tmp_path / "precious")
    with raises(RunError, "cannot-write"):
        atomic.append_text(path, "x")


def test_whether_a_file_can_be_written_is_known_before_the_work(tmp_path: Path) -> None:
    atomic.check_writable(tmp_path / "a.csv")
    assert list(tmp_path.iterdir()) == []
    for bad in (tmp_path, tmp_path / "none" / "a.csv", Path("/proc/a.csv")):
        with raises(RunError, "cannot-write"):
            atomic.check_writable(bad)


def test_the_first_of_two_files_may_be_left_by_a_killed_process(tmp_path: Path) -> None:
    """With the same text it is kept; another file is not changed."""
    path = tmp_path / "card.md"
    for _ in range(2):
        atomic.write_companion(path, "text")
        assert path.read_text() == "text"
    with raises(RunError, "exists"):
        atomic.write_companion(path, "other")
    assert [found.name for found in tmp_path.iterdir()] == ["card.md"]
    assert path.read_text() == "text"


def test_a_probe_is_removed_although_that_fails_once(tmp_path, monkeypatch):
    unlink, failed = Path.unlink, []

    def failing(self, missing_ok=False):
        if self.exists() and not failed:
            failed.append(self)
            raise OSError(errno.EIO, "Input/output error")
        unlink(self, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", failing)
    monkeypatch.setattr(atomic, "_takes_unnamed_file", lambda _: False)
    atomic.check_folder(tmp_path)
    assert (len(failed), list(tmp_path.iterdir())) == (1, [])


def test_a_folder_is_removed_although_that_fails_once(tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_text("b")
    rmdir, failed = os.rmdir, []

    def failing(path, **options):
        if not failed:
            failed.append(path)
            raise OSError(errno.EIO, "Input/output error")
        rmdir(path, **options)

    monkeypatch.setattr(os, "rmdir", failing)
    atomic.remove_folder(tmp_path / "a")
    atomic.remove_folder(tmp_path / "nothing")
    assert (len(failed), list(tmp_path.iterdir())) == (1, [])


def _fill(out: Path) -> None:
    with atomic.new_folder(out) as folder:
        (folder / "sub").mkdir()
        (folder / "sub" / "a").write_text("a")
        (folder / "b").write_text("b")


def _names(folder: Path) -> list[str]:
    return sorted(str(place.relative_to(folder)) for place in folder.rglob("*"))


@pytest.mark.parametrize("number", range(1, 12))
def test_a_folder_that_was_being_filled_when_the_process_died(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """A process that does nothing any more from some call on; then the same command again."""
    calls = 0

    def dying(original):
        def call(*args, **kwargs):
            nonlocal calls
            calls += 1
            if calls >= number:
                raise KeyboardInterrupt
            return original(*args, **kwargs)

        return call

    with monkeypatch.context() as patched, suppress(KeyboardInterrupt):
        for name in ("mkdir", "touch", "unlink", "rename", "rmdir", "write_text"):
            patched.setattr(Path, name, dying(getattr(Path, name)))
        patched.setattr(atomic.shutil, "rmtree", dying(atomic.shutil.rmtree))
        _fill(tmp_path / "out")
    if (tmp_path / "out").exists():
        with raises(RunError, "exists"):
            _fill(tmp_path / "out")
    else:
        _fill(tmp_path / "out")
    assert _names(tmp_path) == ["out", "out/b", "out/sub", "out/sub/a"]


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    partial = atomic.partial_of(tmp_path / "out")
    partial.mkdir()
    (partial / "mine").write_text("x")
    with raises(RunError, "exists"):
        _fill(tmp_path / "out")
    assert _names(tmp_path) == [partial.name, f"{partial.name}/mine"]
    (partial / "mine").unlink()
    partial.rmdir()
    (tmp_path / "elsewhere").mkdir()
    partial.symlink_to(tmp_path / "elsewhere")
    with raises(RunError, "exists"):
        _fill(tmp_path / "out")
    assert not any((tmp_path / "elsewhere").iterdir())
