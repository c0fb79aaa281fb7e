"""Build wheel and source archive, check both, install the wheel into a new environment, and use it there (`make dist`).

By default the new environment borrows PyTorch and the other dependencies from the environment of this Python, and has only
Newkind of its own, from the wheel. With --empty everything is installed, as a user would (about 6 GB, a few minutes).
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import venv
import zipfile
from email import message_from_bytes
from pathlib import Path

ROOT = Path(__file__).parents[1]
TIMEOUT = 1800
SMOKE = Path(__file__).with_name("smoke.py")


def main() -> None:
    """Build, check, install and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="Folder for the files. Default: dist.")
    parser.add_argument("--empty", action="store_true", help="Install all dependencies, too.")
    given = parser.parse_args()
    wheel, archive = build(given.out)
    check_contents(wheel)
    with tempfile.TemporaryDirectory(prefix="newkind-dist-") as folder:
        check_archive(archive, wheel, Path(folder))
        python = make_environment(Path(folder) / "env", wheel, empty=given.empty)
        smoke(python, Path(folder))
    for path in (wheel, archive):
        print(f"{path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}: {size(path)}, checked")


def run(command: list[str], **options: object) -> None:
    """Run a command; its output is shown only if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False, **options)  # type: ignore[call-overload]
    if done.returncode:
        sys.exit(f"{' '.join(command[:6])} ... failed:\n{done.stdout}{done.stderr}")


def build(out: Path) -> tuple[Path, Path]:
    """Wheel and source archive, by the build backend that pyproject.toml names."""
    shutil.rmtree(out, ignore_errors=True)
    run([sys.executable, "-m", "hatchling", "build", "-d", str(out)], cwd=ROOT)
    (wheel,), (archive,) = out.glob("*.whl"), out.glob("*.tar.gz")
    return wheel, archive


def check_contents(wheel: Path) -> None:
    """Every file of the package is in the wheel, and the metadata is valid."""
    from packaging.metadata import Metadata

    with zipfile.ZipFile(wheel) as opened:
        names = set(opened.namelist())
        (place,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        text = opened.read(place)
    files = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src/newkind").rglob("*") if path.is_file()}
    files = {Path(name).as_posix() for name in files if "__pycache__" not in name}
    if missing := sorted(files - names):
        sys.exit(f"Not in the wheel: {', '.join(missing)}")
    if extra := sorted(name for name in names - files if ".dist-info/" not in name):
        sys.exit(f"Only in the wheel: {', '.join(extra)}")
    Metadata.from_email(text, validate=True)
    described = message_from_bytes(text)
    if described["Description-Content-Type"] != "text/markdown" or not described.get_payload():
        sys.exit("The wheel has no description.")


def check_archive(archive: Path, wheel: Path, folder: Path) -> None:
    """A wheel that is built from the source archive has the same files."""
    with tarfile.open(archive) as opened:
        opened.extractall(folder / "source", filter="data")
    (source,) = (folder / "source").iterdir()
    run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "again")], cwd=source)
    (again,) = (folder / "again").glob("*.whl")
    with zipfile.ZipFile(wheel) as first, zipfile.ZipFile(again) as second:
        if sorted(first.namelist()) != sorted(second.namelist()):
            sys.exit(f"{archive.name} lacks files of the wheel.")


def make_environment(folder: Path, wheel: Path, *, empty: bool) -> Path:
    """Python of a new environment with the wheel."""
    venv.create(folder, with_pip=empty, symlinks=os.name != "nt")
    scripts = folder / ("Scripts" if os.name == "nt" else "bin")
    python = scripts / ("python.exe" if os.name == "nt" else "python")
    if empty:
        run([str(python), "-m", "pip", "install", "--quiet", str(wheel)])
        return python
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    run([*pip, str(wheel)])  # before the other packages are visible: pip must not see a Newkind among them
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = folder / ("Lib/site-packages" if os.name == "nt" else f"lib/{version}/site-packages")
    (packages / "borrowed.pth").write_text(f"{sysconfig.get_path('purelib')}\n{sysconfig.get_path('platlib')}\n")
    return python


def smoke(python: Path, folder: Path) -> None:
    """Use the installed Newkind, far from the checkout."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    clean |= {"NEWKIND_CACHE": str(folder / "cache"), "PYTHONSAFEPATH": "1"}
    work = folder / "work"
    work.mkdir()
    shutil.copy(SMOKE, work)
    run([str(python), "smoke.py"], cwd=work, env=clean)


def size(path: Path) -> str:
    """Size of a file in words."""
    return f"{path.stat().st_size / 1e6:.1f} MB"


if __name__ == "__main__":
    main()
