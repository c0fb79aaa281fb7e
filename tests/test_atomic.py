"""Files are written as a whole or not at all."""

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
    with atomic.replacing(path, error=CacheError) as partial:
        partial.write_text("half")
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
