"""A data collection: what a method may use (`Catalog`), and the true classes for evaluation only (`Truth`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from newkind.data.items import Features, Images
from newkind.errors import DataError

__all__ = ["Catalog", "Collection", "Skipped", "Truth", "find_obstacles"]

UNLABELLED = -1


@dataclass(frozen=True, kw_only=True)
class Catalog:
    """Items, given labels and names of the known classes: all that a method may use.

    Parameters
    ----------
    items : Images or Features, length n_items
        Images or precomputed features.
    labels : ndarray of int32, shape (n_items,)
        Index into `class_names`, or -1 for an unlabelled item.
    class_names : tuple of str, length n_known_classes
        Names of the known classes.
    groups : ndarray of int64, shape (n_items,), optional
        Group of each item, whose items share a category; -1 for an item without a group. Default: no groups.

    Raises
    ------
    DataError
        If a label is out of range, or there is not one label per item.

    Examples
    --------
    >>> import numpy as np
    >>> from newkind.data import from_features
    >>> catalog = from_features(np.eye(4), ["bee", "wasp", "bee", None]).catalog
    >>> catalog.class_names, catalog.labels.tolist(), catalog.counts().tolist()
    (('bee', 'wasp'), [0, 1, 0, -1], [2, 1])
    """

    items: Images | Features
    labels: NDArray[np.int32]
    class_names: tuple[str, ...]
    groups: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        if self.groups is not None and self.groups.shape != self.labels.shape:
            raise DataError(
                f"There are {len(self.labels)} items but {len(self.groups)} groups; expected one group per item.",
                code="group-count",
                n_items=len(self.labels),
                n_groups=len(self.groups),
            )
        if self.labels.shape != (len(self.items),):
            raise DataError(
                f"There are {len(self.items)} items but {len(self.labels)} labels; expected one label per item.",
                code="label-count",
                n_items=len(self.items),
                n_labels=len(self.labels),
            )
        if self.labels.size and not (self.labels.min() >= -1 and self.labels.max() < len(self.class_names)):
            raise DataError(
                f"Labels must lie between -1 and {len(self.class_names) - 1} for {len(self.class_names)} classes, "
                f"got {self.labels.min()} to {self.labels.max()}.",
                code="label-range",
            )

    def __len__(self) -> int:
        return len(self.items)

    @property
    def is_labelled(self) -> NDArray[np.bool_]:
        """Mask of shape (n_items,) of the labelled items."""
        return np.not_equal(self.labels, UNLABELLED)

    @property
    def n_known_classes(self) -> int:
        """Number of known classes."""
        return len(self.class_names)

    def counts(self) -> NDArray[np.int64]:
        """Count the labelled items per known class.

        Returns
        -------
        ndarray of int64, shape (n_known_classes,)
        """
        return np.bincount(self.labels[self.is_labelled], minlength=self.n_known_classes)


@dataclass(frozen=True, kw_only=True)
class Truth:
    """True classes. Methods never get them; they are used for evaluation only.

    Parameters
    ----------
    labels : ndarray of int32, shape (n_items,)
        Index into `class_names`, or -1 where the true class is unknown.
    class_names : tuple of str
        The known (Old) classes in the order of the catalog, then the New classes.
    n_old : int
        Number of Old classes.
    """

    labels: NDArray[np.int32]
    class_names: tuple[str, ...]
    n_old: int

    @property
    def is_old(self) -> NDArray[np.bool_]:
        """Mask of shape (n_items,) of the items whose true class is an Old class."""
        return (self.labels >= 0) & (self.labels < self.n_old)


@dataclass(frozen=True)
class Skipped:
    """File that is not used, and why.

    Parameters
    ----------
    name : str
        Path of the file, in the same form as the names of items.
    reason : str
        Reason in words, without a full stop.
    code : str, default="broken-image"
        Stable identifier of the reason, such as `unsupported-format` or `broken-link`.

    Examples
    --------
    >>> Skipped("cats/1.avif", "AVIF is not supported", "unsupported-format").code
    'unsupported-format'
    """

    name: str
    reason: str
    code: str = "broken-image"


@dataclass(frozen=True, kw_only=True)
class Collection:
    """Data from one source, ready to be used.

    Parameters
    ----------
    catalog : Catalog
        Items, labels and known classes.
    truth : Truth, optional
        True classes, if the source has them.
    skipped : tuple of Skipped, default=()
        Files that are not used, with the reasons.
    ignored : mapping of str to int, default={}
        Number of files of other types below a data folder, by suffix.
    origin : str, default=""
        Description of the source for display.
    benchmark : str, default=""
        Name of the published benchmark; empty for a user's own data, whatever its folder is called.
    location : str, default=""
        Value of `data` for which `open_data` opens the same data from any working directory; empty for data in memory.
    reading : mapping of str to Any, default={}
        Options with which `open_data` opens the same data, as JSON values.
    notes : tuple of str, default=()
        Remarks about the data, in sentences.
    metadata : mapping of str to sequence of str, default={}
        Further columns of the data by name, one text per item.
    group_column : str, default=""
        Name of the metadata that the groups come from; empty without groups.
    """

    catalog: Catalog
    truth: Truth | None = None
    skipped: tuple[Skipped, ...] = ()
    ignored: Mapping[str, int] = field(default_factory=dict)
    origin: str = ""
    benchmark: str = ""
    location: str = ""
    reading: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    metadata: Mapping[str, Sequence[str]] = field(default_factory=dict)
    group_column: str = ""


def find_obstacles(labels: NDArray[np.int32], class_names: Sequence[str]) -> list[DataError]:
    """List the reasons why no categories can be discovered with these labels.

    Parameters
    ----------
    labels : ndarray of int32, shape (n_items,)
        Index into `class_names`, or -1 for an unlabelled item.
    class_names : sequence of str
        Names of the known classes.

    Returns
    -------
    list of DataError
        Errors with the codes `no-labels`, `all-labelled` or `single-class`; empty if the data can be used.

    Examples
    --------
    >>> import numpy as np
    >>> [obstacle.code for obstacle in find_obstacles(np.array([0, 0, -1], dtype=np.int32), ["bee"])]
    ['single-class']
    """
    n_labelled = int((labels != UNLABELLED).sum())
    found = []
    if n_labelled == 0:
        found.append(
            DataError(
                "No image is labelled.",
                fix="Label some images of each known class: in the column of labels of a table, or by putting them into a "
                "subfolder named after the class. Boxes of a detector are added to either with `boxes`.",
                code="no-labels",
            )
        )
    elif n_labelled == len(labels):
        found.append(
            DataError(
                "All images are labelled, so there are no images in which to discover categories.",
                fix="Put unlabelled images into a subfolder called 'unlabelled', or leave their label empty in the table.",
                code="all-labelled",
            )
        )
    used = np.unique(labels[labels != UNLABELLED])
    if len(used) == 1:
        name = class_names[int(used[0])]
        found.append(
            DataError(
                f"There is only one known class with labelled images ('{name}'), but at least two are needed.",
                fix="Label some images of another class.",
                code="single-class",
                class_name=name,
            )
        )
    return found
