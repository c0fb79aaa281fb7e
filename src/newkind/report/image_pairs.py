"""Rows of two runs that are the same image, although the runs may name its file differently."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from newkind.runs.image_match import match_images

__all__ = ["ImagePairs", "pair_by_content", "pair_images"]


@dataclass(frozen=True, eq=False)
class ImagePairs:
    """Pairs of rows of two runs.

    Parameters
    ----------
    here, there : ndarray of int64, shape (m,)
        Rows of this run, in increasing order, and of the other run.
    n_by_ending : int
        Number of pairs whose paths are not equal, only their endings.
    by_content : bool, default=False
        Whether the contents of the images were compared instead of their paths.
    """

    here: NDArray[np.int64]
    there: NDArray[np.int64]
    n_by_ending: int
    by_content: bool = False

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.here)


def pair_by_content(
    files: list[str], digests: list[bytes], other_files: list[str], other_digests: list[bytes]
) -> ImagePairs:
    """Pair images by content; of several with the same content, those with equal paths first, each in one pair only.

    Parameters
    ----------
    files, other_files : list of str
        Names of the images of the two runs.
    digests, other_digests : list of bytes
        Digests of their contents.

    Returns
    -------
    ImagePairs
    """
    there = match_images(files, digests, other_files, other_digests)
    partner = {int(j): i for i, j in reversed(list(enumerate(there.tolist()))) if j >= 0}
    partner |= {int(there[i]): i for i, file in enumerate(files) if there[i] >= 0 and other_files[there[i]] == file}
    here = np.array(sorted(partner.values()), dtype=np.int64)
    return ImagePairs(here=here, there=there[here], n_by_ending=0, by_content=True)


def pair_images(files: list[str], other_files: list[str]) -> ImagePairs:
    """Pair images by path; images without an equal path by the longest ending of the path that is unique in both runs.

    The same images have different paths if a run was made from another folder (`photos/cat/1.jpg` and `cat/1.jpg`) or if
    a file was moved into a class folder since (`unlabelled/1.jpg` and `cat/1.jpg`). An ending consists of whole parts of
    the path. It must be unique among all images of each run: `1.jpg` pairs nothing where every class has a `1.jpg`.

    Parameters
    ----------
    files, other_files : list of str
        Names of the images of the two runs; unique within a run.

    Returns
    -------
    ImagePairs
    """
    place = {file: j for j, file in enumerate(other_files)}
    partner = {i: place[file] for i, file in enumerate(files) if file in place}
    n_equal = len(partner)
    parts, other_parts = [_parts(file) for file in files], [_parts(file) for file in other_files]
    depth = min(max(map(len, parts), default=0), max(map(len, other_parts), default=0))
    for length in range(depth, 0, -1):
        taken = set(partner.values())
        here, there = _unique_endings(parts, length), _unique_endings(other_parts, length)
        for ending, i in here.items():
            j = there.get(ending)
            if i not in partner and j is not None and j not in taken:
                partner[i] = j
    rows = sorted(partner)
    return ImagePairs(
        here=np.array(rows, dtype=np.int64),
        there=np.array([partner[i] for i in rows], dtype=np.int64),
        n_by_ending=len(partner) - n_equal,
    )


def _parts(file: str) -> tuple[str, ...]:
    return tuple(part for part in file.split("/") if part)


def _unique_endings(parts: list[tuple[str, ...]], length: int) -> dict[tuple[str, ...], int]:
    """Map endings of `length` parts that exactly one file has to the row of that file."""
    endings = {i: each[-length:] for i, each in enumerate(parts) if len(each) >= length}
    counts = Counter(endings.values())
    return {ending: i for i, ending in endings.items() if counts[ending] == 1}
