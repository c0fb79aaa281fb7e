"""What the user typed leads to the right source, or to an error."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import newkind.data
from error_codes import raises
from newkind.data import open_data
from newkind.errors import DataError


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("", "empty-name"),
        pytest.param("x" * 300, "unreadable", id="long"),
        ("a\0b", "missing-file"),
        ("~nosuch/x", "missing-file"),
        ("/dev/zero", "not-a-file"),
        ("x.docx", "unsupported-type"),
        ("pipe.csv", "not-a-file"),
        ("nowhere", "missing-file"),
        ("empty", "no-images"),
    ],
)
def test_names_of_no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.docx").write_text("x")
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "empty").mkdir()
    with raises(DataError, code):
        open_data(name)


def test_the_home_folder_is_found(pile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(pile.parent))
    assert len(open_data("~/pile").catalog) == 9


def test_everything_public_can_be_imported_without_torch() -> None:
    code = "import sys, newkind.data as d; [getattr(d, name) for name in d.__all__]; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
    assert sorted(newkind.data.__all__) == sorted(set(newkind.data.__all__))


def test_what_to_do_with_files_of_other_types(tmp_path: Path) -> None:
    for name, word in {"x.xls": ".xlsx", "x.zip": "folder", "x.tar.gz": "gunzip"}.items():
        (tmp_path / name).write_text("x")
        with raises(DataError, "unsupported-type") as caught:
            open_data(tmp_path / name)
        assert word in caught.value.fix
