"""What is new in a run since the run that it continues."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath

import numpy as np

from newkind.report.contents import RunContents
from newkind.runs.run_schemas import ContinuedFile

__all__ = ["Growth", "Since", "since_of"]

EXAMPLES = 8


@dataclass(frozen=True)
class Growth:
    """New images of one category.

    `category` is its index, `n_added` and `n_before` count new and other images, `is_opened` says whether the category
    opened for them, and `lines` are rows of examples, the most confident first.
    """

    category: int
    n_added: int
    n_before: int
    is_opened: bool
    lines: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Since:
    """Contents of the section about a continued run.

    Parameters
    ----------
    run : str
        Name of the run before.
    n_added : int
        Number of new images.
    grown : tuple of Growth
        Categories with new images: those that opened first, then by number.
    n_opened : int
        Number of categories that opened and have images.
    n_moved : int
        Number of images that the run before had in another category.
    n_copies : int
        Number of added files that were left out as copies.
    missing : tuple of str
        Images of the run before that were not found.
    gone : tuple of str
        Categories of the run before whose images are all missing.
    """

    run: str
    n_added: int
    grown: tuple[Growth, ...]
    n_opened: int
    n_moved: int
    n_copies: int
    missing: tuple[str, ...]
    gone: tuple[str, ...]

    @property
    def n_missing(self) -> int:
        """Number of missing images."""
        return len(self.missing)


def since_of(contents: RunContents) -> Since | None:
    """What is new since the run that was continued.

    Parameters
    ----------
    contents : RunContents
        A run.

    Returns
    -------
    Since or None
        None if the run continues no other.
    """
    if contents.is_added is None:
        return None
    about = contents.run.read_json(contents.run.continued_file, ContinuedFile)
    opened = set(about["opened"])
    grown = []
    for k, members in enumerate(contents.members):
        added = members[contents.is_added[members]]
        if len(added):
            best = added[np.lexsort((added, -contents.confidence[added]))][:EXAMPLES]
            is_opened = contents.categories[k].id in opened
            grown.append(Growth(k, len(added), len(members) - len(added), is_opened, tuple(best.tolist())))
    grown.sort(key=lambda growth: (not growth.is_opened, -growth.n_added))
    return Since(
        run=PurePath(about["run"]).name,
        n_added=int(contents.is_added.sum()),
        grown=tuple(grown),
        n_opened=sum(growth.is_opened for growth in grown),
        n_moved=about["n_moved"],
        n_copies=about["n_copies"],
        missing=tuple(about["missing"]),
        gone=tuple(about["gone"]),
    )
