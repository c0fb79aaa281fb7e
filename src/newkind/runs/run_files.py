"""Which image files a run may touch: images below the folder of its data, or below one that the user names.

A run folder may come from somebody else. What it calls its files is checked here before a command links, copies or moves
one of them.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from newkind.data.decoding import IMAGE_SUFFIXES, open_checked
from newkind.data.names import printable
from newkind.errors import BrokenImage, RunError
from newkind.runs.run import Run

__all__ = ["RunFiles", "check_image_file", "files_of", "run_files"]


@dataclass(frozen=True)
class RunFiles:
    """Image files of a run.

    Parameters
    ----------
    root : Path
        Folder that the names of the run are relative to.
    data : Path, optional
        Folder that contains the images now, or the folders of the run (`root` and `added`) with their names. Default: `root`.
    added : tuple of Path, default=()
        Further folders of a run that was continued. Images in them have absolute names.
    """

    root: Path
    data: Path | None = None
    added: tuple[Path, ...] = ()

    @property
    def folder(self) -> Path:
        """Folder below which all files are."""
        return Path(os.path.abspath(self.data or self.root))

    def path(self, name: str) -> Path:
        """Path of an image, whether it exists or not.

        Parameters
        ----------
        name : str
            Name of the image in the run: relative to the folder, or absolute.

        Returns
        -------
        Path
            Absolute, without `..`.

        Raises
        ------
        RunError
            With the code `outside-root` for a name that leads out of the folder.
        """
        allowed = [] if "\0" in name else self._allowed(name)
        if allowed:
            return next((path for path in allowed if path.exists()), allowed[0])
        raise RunError(
            f"The run lists {printable(name)!r}, which is not below {printable(str(self.folder))}. Nothing was changed.",
            fix="If it is one of your images, name a folder that contains all of them with `data`.",
            code="outside-root",
            name=name,
        )

    def _allowed(self, name: str) -> list[Path]:
        """Paths that an image may have, the most likely first."""
        own = [
            folder for folder in self.added if os.path.isabs(name) and _is_below(Path(os.path.abspath(name)), folder)
        ]
        places = [self.root] if self.data is None else [self.data, self.root]
        paths = [place / name for place in places]
        if self.data is not None:  # it may contain the folders of the run, with their names
            for folder in own:
                rest = os.path.relpath(name, folder)
                paths += [self.data / folder.name / rest, self.data / rest]
            paths += [] if os.path.isabs(name) else [self.data / self.root.name / name]
        below = [path for path in map(_absolute, paths) if _is_below(path, self.folder)]
        return below + [_absolute(Path(name)) for _ in own[:1]]


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path))


def _is_below(path: Path, folder: Path) -> bool:
    return path != folder and path.is_relative_to(folder)


def files_of(run: Run, data: Path | None = None) -> RunFiles:
    """Image files of a run, in the folders where they were or in `data`.

    Raises
    ------
    RunError
        With the code `no-files` if the run was not made from image files.
    """
    config = run.config()
    if not isinstance(config.get("root"), str):
        raise RunError(f"{run.folder} was not made from a folder of image files.", code="no-files")
    return run_files(config, data)


def run_files(config: dict[str, Any], data: Path | None = None) -> RunFiles:
    """Image files of a run, from the contents of its config.json; `data` as in `files_of`."""
    root, added = config.get("root"), config.get("added")
    places = [Path(os.path.abspath(place)) for place in added if isinstance(place, str)] if added else []
    folders = tuple(place if place.is_dir() or not place.suffix else place.parent for place in places)
    return RunFiles(Path(root) if isinstance(root, str) else Path(data or ""), data, folders)


def check_image_file(path: Path) -> None:
    """Raise RunError unless a file exists and is an image: by its suffix, otherwise by its content.

    Raises
    ------
    RunError
        With the code `missing-file` or `not-an-image`.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise _not_an_image(path, "not a regular file")
        if path.suffix.lower() not in IMAGE_SUFFIXES:
            open_checked(path.read_bytes(), name=path.name)
    except BrokenImage as problem:
        raise _not_an_image(path, str(problem.facts["reason"])) from None
    except OSError as problem:
        raise RunError(
            f"{path} does not exist any more, or cannot be read ({problem.strerror}). Nothing was changed.",
            fix="Name the folder that the images are in now with `data`.",
            code="missing-file",
            file=path,
        ) from None


def _not_an_image(path: Path, reason: str) -> RunError:
    return RunError(
        f"The run lists {path} as an image ({reason}). Nothing was changed.", code="not-an-image", file=path
    )
