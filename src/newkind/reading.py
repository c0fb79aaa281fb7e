"""How data is read: columns of tables, files with labels or boxes, and the folder of the images.

This module imports neither torch nor NumPy, so that `newkind --help` stays fast.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from newkind.errors import ConfigError
from newkind.setting import check_settings, setting

__all__ = ["ReadingConfig", "check_used", "split_reading"]

COLUMNS = ("file_column", "label_column", "truth_column", "group_column")


@dataclass(frozen=True, kw_only=True)
class ReadingConfig:
    """Options for reading data.

    Parameters
    ----------
    file_column : str, optional
        Column of a table with the names of the image files. Default: file_name, or a usual synonym.
    label_column : str, optional
        Column of a table with the labels. Default: label, or a usual synonym such as species or class.
    truth_column : str, optional
        Column of a table with the true classes, which are used for evaluation only. Default: truth, if there is one.
    group_column : str, optional
        Column of a table whose equal values make a group, such as a burst or a specimen. Images of a group share a category.
    labels : Path, optional
        Labels of the rows of an .npy file: a table, a .txt file with one label per line, or an .npy file.
    image_folder : Path, optional
        Folder that the file names of a table or a .json file start from. Default: the folder of that file.
    boxes : Path, optional
        Detections (.json of MegaDetector or COCO) in the image files of the data. Each box becomes an item.
    box_category : str, optional
        Category of the detector whose boxes are used, or all. Default: animal, if the file has it, otherwise all.
    min_box_confidence : float, default=0.2
        Lowest confidence of boxes that are used, between 0 and 1.
    box_margin : float, default=0.1
        Margin around a box on each side, as a fraction of its longer side.
    """

    file_column: str | None = None
    label_column: str | None = None
    truth_column: str | None = None
    group_column: str | None = None
    labels: Path | None = None
    image_folder: Path | None = None
    boxes: Path | None = None
    box_category: str | None = None
    min_box_confidence: float = setting(0.2, at_least=0, at_most=1)
    box_margin: float = setting(0.1, at_least=0, at_most=10)

    def __post_init__(self) -> None:
        for name in ("labels", "image_folder", "boxes"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, Path(value).expanduser())
        check_settings(self)

    def given(self) -> dict[str, Any]:
        """Options that differ from their defaults, by name; files and folders as absolute paths in text, as in JSON."""
        found = {
            item.name: getattr(self, item.name) for item in fields(self) if getattr(self, item.name) != item.default
        }
        return {name: str(value.absolute()) if isinstance(value, Path) else value for name, value in found.items()}


def split_reading(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options by name as those of `ReadingConfig`, and all others.

    Examples
    --------
    >>> split_reading({"label_column": "species", "epochs": 3})
    ({'label_column': 'species'}, {'epochs': 3})
    """
    names = {item.name for item in fields(ReadingConfig)}
    chosen = {name: value for name, value in options.items() if name in names}
    return chosen, {name: value for name, value in options.items() if name not in names}


def check_used(reading: ReadingConfig, used: tuple[str, ...], what: str) -> None:
    """Raise ConfigError if an option was given that does not apply to this kind of data; `what` names the kind."""
    for name in reading.given():
        if name not in used:
            raise ConfigError(
                f"`{name}` does not apply to {what}.", fix="Leave it out.", code="unused-option", setting=name
            )
