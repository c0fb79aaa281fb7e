"""When and where the image of each item was taken, from metadata columns and from the files themselves."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime

from newkind.data.names import printable
from newkind.errors import DataError
from newkind.export.contents import ExportContents
from newkind.export.options import ExportOptions
from newkind.export.roles import coordinate, find_roles, parse_time, parse_timezone

__all__ = ["Occasion", "find_occasions"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Occasion:
    """When and where an image was taken.

    Parameters
    ----------
    time : datetime, optional
        With time zone.
    latitude, longitude : float, optional
        In degrees.
    deployment : str, default=""
        Camera, station or site.
    """

    time: datetime | None = None
    latitude: float | None = None
    longitude: float | None = None
    deployment: str = ""


def find_occasions(
    contents: ExportContents, options: ExportOptions, *, required: tuple[str, ...] = ()
) -> list[Occasion]:
    """Occasion of each item.

    Parameters
    ----------
    contents : ExportContents
        The items.
    options : ExportOptions
        Columns and time zone.
    required : tuple of str, default=()
        Roles without which there is no export. A missing time is read from the image files, a missing deployment is the
        folder of the image.

    Returns
    -------
    list of Occasion

    Raises
    ------
    DataError
        With the code `missing-column`, `missing-value`, `invalid-time`, `missing-timezone` or `invalid-coordinate`.
    """
    roles, zone = find_roles(contents.columns, options.columns), parse_timezone(options.timezone)
    for role in ("latitude", "longitude"):
        if role in required and role not in roles:
            raise DataError(
                f"This format needs the {role} of every image, and the run has no such metadata column.",
                fix="Add the column to the table of the data, or name it with `columns`.",
                code="missing-column",
                column=role,
            )
    if "deployment" in required and "deployment" not in roles:
        logger.info("There is no column of deployments; the folder of each image is used.")
    found = []
    for row, item in enumerate(contents.items):
        file, texts = printable(item.line.file), {role: item.metadata[column] for role, column in roles.items()}
        places = {
            role: coordinate(texts[role], role, file) if texts.get(role, "").strip() else None
            for role in ("latitude", "longitude")
        }
        time = None
        if texts.get("timestamp", "").strip():
            time = parse_time(texts["timestamp"], file, zone)
        elif "timestamp" in required:
            taken = contents.images.facts(row).taken
            time = None if taken is None else parse_time(taken.isoformat(), file, zone)
        folder = item.line.file.rpartition("/")[0] or "."
        deployment = texts.get("deployment", "").strip() or (folder if "deployment" in required else "")
        made = Occasion(time, places["latitude"], places["longitude"], deployment)
        _check(made, file, required)
        found.append(made)
    return found


def _check(occasion: Occasion, file: str, required: tuple[str, ...]) -> None:
    values = {"timestamp": occasion.time, "latitude": occasion.latitude, "longitude": occasion.longitude}
    for role, value in values.items():
        if role in required and value is None:
            where = " in the metadata or in the file" if role == "timestamp" else " in the metadata"
            raise DataError(
                f"{file} has no {role}{where}, which this format needs.",
                fix="Complete the table of the data, or name another column with `columns`.",
                code="missing-value",
                file=file,
                role=role,
            )
