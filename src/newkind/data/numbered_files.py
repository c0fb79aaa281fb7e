"""Files that are named together: all of a kind in a folder, or a pattern with a range of numbers such as shard-{000..012}.tar."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from math import prod
from pathlib import Path

from newkind.data.names import printable
from newkind.errors import DataError

__all__ = ["files_in", "is_range", "numbered_files", "prefixes"]

RANGE = re.compile(r"\{(\d+)\.\.(\d+)\}")
MAX_FILES = 100_000


def is_range(text: str) -> bool:
    """Whether a text is a pattern with a range of numbers, and not the name of a file that exists."""
    return RANGE.search(text) is not None and not os.path.lexists(os.path.expanduser(text))


def numbered_files(text: str) -> list[Path]:
    """Files that a pattern stands for, whether they exist or not.

    Examples
    --------
    >>> [path.name for path in numbered_files("s-{08..10}.tar")]
    ['s-08.tar', 's-09.tar', 's-10.tar']
    """
    if prod(len(range(int(first[:9]), int(last[:9]) + 1)) for first, last in RANGE.findall(text)) > MAX_FILES:
        raise DataError(f"{printable(text)} stands for more than {MAX_FILES:,} files.", code="too-many-files")
    found = RANGE.search(text)
    if found is None:
        return [Path(os.path.expanduser(text))]
    numbers = (f"{number:0{len(found[1])}d}" for number in range(int(found[1][:9]), int(found[2][:9]) + 1))
    return [path for n in numbers for path in numbered_files(text[: found.start()] + n + text[found.end() :])]


def prefixes(paths: Sequence[Path]) -> list[str]:
    """What names of images start with that are in these files: nothing for one file, otherwise what distinguishes the files.

    Examples
    --------
    >>> prefixes([Path("a/0.tar"), Path("a/1.tar")]), prefixes([Path("a/0.tar"), Path("b/0.tar")])
    (['0/', '1/'], ['a/0.tar/', 'b/0.tar/'])
    """
    if len(paths) == 1:
        return [""]
    found = [[path.stem for path in paths], [path.name for path in paths]]
    shortest = next((names for names in found if len(set(names)) == len(names)), None)
    if shortest is None:
        above = os.path.commonpath([path.absolute().parent for path in paths])
        shortest = [path.absolute().relative_to(above).as_posix() for path in paths]
    return [f"{name}/" for name in shortest]


def files_in(folder: Path, suffixes: tuple[str, ...]) -> list[Path]:
    """Files of a folder with one of the suffixes, sorted; empty if the folder cannot be read."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if entry.name.lower().endswith(suffixes) and entry.is_file())
    except OSError:
        return []
    return [folder / name for name in names if not name.startswith(".")]
