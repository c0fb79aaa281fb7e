"""What a user gives to `predict` in Python, as items."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from newkind.data.cells import group_name
from newkind.data.given_images import GivenImages, flat_inputs
from newkind.data.groups import number_groups
from newkind.data.items import Features, Images
from newkind.errors import DataError
from newkind.pipeline.predict_inputs import read_inputs

__all__ = ["groups_of", "read_given"]


def read_given(inputs: Sequence[Any], of_run: Mapping[str, Any] | None = None) -> Images | Features:
    """Items of paths, image files in memory, PIL images, arrays, and array-likes of them.

    Parameters
    ----------
    inputs : sequence
        As in `Discovery.predict`.
    of_run : mapping, optional
        Options with which the data of the run was read; its boxes are cropped in the same way.

    Returns
    -------
    Images or Features

    Raises
    ------
    DataError
        With the code `no-images` for nothing, `mixed-inputs` for features among images.
    """
    if len(inputs) == 1 and _is_features(inputs[0]):
        values = np.asarray(inputs[0])
        return Features(values, [str(i) for i in range(len(values))])
    given = flat_inputs(inputs)
    if not given:
        raise DataError("There is nothing to predict.", fix="Give at least one image.", code="no-images")
    if all(isinstance(item, str | os.PathLike) for item in given):
        return read_inputs([Path(item) for item in given], missing_ok=True, of_run=of_run)
    return GivenImages.named(given)


def groups_of(groups: Iterable[Any], n_items: int) -> NDArray[np.int64]:
    """Groups (n,) as numbers, -1 for none."""
    names = [group_name(value) for value in groups]
    if len(names) != n_items:
        raise DataError(
            f"There are {n_items} images but {len(names)} groups; expected one group per image.",
            code="group-count",
            n_items=n_items,
            n_groups=len(names),
        )
    return number_groups(names)


def _is_features(value: Any) -> bool:
    """Whether an input is a table of floating-point features, not an image."""
    return isinstance(value, np.ndarray) and value.ndim == 2 and np.issubdtype(value.dtype, np.floating)
