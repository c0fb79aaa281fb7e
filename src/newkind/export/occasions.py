"""When and where the image of each item was taken, from metadata columns, a table of deployments, and the files themselves."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from datetime import timezone as Timezone

from newkind.data.names import printable
from newkind.data.wording import count
from newkind.errors import DataError
from newkind.export.contents import ExportContents, ExportItem
from newkind.export.deployments import Deployment, read_deployments
from newkind.export.options import ExportOptions
from newkind.export.roles import coordinate, find_roles, is_date, parse_time, parse_timezone

__all__ = ["Occasion", "find_occasions"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Occasion:
    """When and where an image was taken.

    Parameters
    ----------
    time : datetime, optional
        With time zone.
    is_day : bool, default=False
        Whether only the day is known; `time` is then its beginning.
    latitude, longitude : float, optional
        In degrees.
    deployment : str, default=""
        Camera, station or site.
    place : Deployment, optional
        The deployment in the table of deployments.
    """

    time: datetime | None = None
    is_day: bool = False
    latitude: float | None = None
    longitude: float | None = None
    deployment: str = ""
    place: Deployment | None = None


def find_occasions(
    contents: ExportContents, options: ExportOptions, *, required: tuple[str, ...] = ()
) -> list[Occasion]:
    """Occasion of each item.

    Parameters
    ----------
    contents : ExportContents
        The items.
    options : ExportOptions
        Columns, table of deployments and time zone.
    required : tuple of str, default=()
        Roles without which there is no export. A missing time is read from the image files, a missing deployment is the
        folder of the image.

    Returns
    -------
    list of Occasion

    Raises
    ------
    DataError
        With the code `missing-column`, `missing-value`, `invalid-time`, `missing-timezone`, `invalid-coordinate` or
        `unknown-deployment`, or as from `read_deployments`.
    """
    roles, zone = find_roles(contents.columns, options.columns), parse_timezone(options.timezone)
    places = None if options.deployments is None else read_deployments(options.deployments, zone)
    for role in ("latitude", "longitude"):
        if role in required and role not in roles and places is None:
            raise DataError(
                f"This format needs the {role} of every image, and the run has no such metadata column.",
                fix="Give a table with the columns deployment (or site), latitude and longitude as `deployments`, or name a "
                "metadata column with `columns`.",
                code="missing-column",
                column=role,
            )
    if "deployment" not in roles and ("deployment" in required or places is not None):
        logger.info("There is no column of deployments; the folder of each image is used.")
    reader = _OccasionReader(contents, roles, zone, places, required, _has_only_days(contents, roles))
    found = [reader.read(row, item) for row, item in enumerate(contents.items)]
    _log_times(found, roles, required)
    return found


@dataclass(frozen=True)
class _OccasionReader:
    """Reads the occasion of one item."""

    contents: ExportContents
    roles: Mapping[str, str]
    zone: Timezone | None
    places: Mapping[str, Deployment] | None
    required: tuple[str, ...]
    only_days: bool

    def read(self, row: int, item: ExportItem) -> Occasion:
        file = printable(item.line.file)
        texts = {role: item.metadata[column].strip() for role, column in self.roles.items()}
        deployment = texts.get("deployment", "")
        if "deployment" in self.required or self.places is not None:
            deployment = deployment or item.line.file.rpartition("/")[0] or "."
        place = self._place(deployment, file)
        spot = {
            role: coordinate(texts[role], role, file) if texts.get(role) else getattr(place, role, None)
            for role in ("latitude", "longitude")
        }
        time, is_day = self._time(row, texts, file)
        made = Occasion(time, is_day, spot["latitude"], spot["longitude"], deployment, place)
        _check(made, file, self.required)
        return made

    def _place(self, deployment: str, file: str) -> Deployment | None:
        if self.places is None:
            return None
        if deployment not in self.places:
            known = ", ".join(map(printable, list(self.places)[:8]))
            raise DataError(
                f"The deployment {printable(deployment)} of {file} is not in the table of deployments, which has {known}"
                f"{' and others' if len(self.places) > 8 else ''}.",
                fix="Add it to the table, or name the right metadata column with `columns`.",
                code="unknown-deployment",
                deployment=deployment,
            )
        return self.places[deployment]

    def _time(self, row: int, texts: Mapping[str, str], file: str) -> tuple[datetime | None, bool]:
        """Time of an image, and whether only its day is known."""
        text, needed = texts.get("timestamp", ""), "timestamp" in self.required
        is_day = is_date(text) and (self.only_days or len(text) == len("2024-05-01"))
        if is_day and texts.get("time"):
            clock = re.sub(r"^(\d):", r"0\1:", texts["time"])
            text, is_day = f"{text[:10]} {clock}", False
        if text:
            return parse_time(text, file, UTC if is_day and not needed else self.zone), is_day
        taken = self.contents.images.facts(row).taken if needed else None
        return (None if taken is None else parse_time(taken.isoformat(), file, self.zone)), False


def _has_only_days(contents: ExportContents, roles: Mapping[str, str]) -> bool:
    """Whether no timestamp has a time of day; midnight is then what a spreadsheet made of a day."""
    column = roles.get("timestamp")
    texts = [] if column is None else [item.metadata[column].strip() for item in contents.items]
    return all(is_date(text) for text in texts if text)


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


def _log_times(occasions: list[Occasion], roles: Mapping[str, str], required: tuple[str, ...]) -> None:
    """Say what a reader of the export should know about its times."""
    n_days = sum(occasion.is_day for occasion in occasions)
    if "timestamp" in required and n_days:
        logger.warning(f"{count(n_days, 'image')} with a date but no time of day: 00:00 is written.")
    if "time" in roles and "timestamp" in roles and n_days < len(occasions):
        logger.info(f"The column {roles['time']} is the time of day where {roles['timestamp']} is only a date.")
    outside = [
        occasion
        for occasion in occasions
        if occasion.time is not None
        and occasion.place is not None
        and (
            (occasion.place.start is not None and occasion.time < occasion.place.start)
            or (occasion.place.end is not None and occasion.time > occasion.place.end)
        )
    ]
    if outside:
        names = ", ".join(sorted({printable(occasion.deployment) for occasion in outside})[:5])
        logger.warning(
            f"{count(len(outside), 'image')} taken before the start or after the end of the deployment ({names}): "
            "check the clocks of the cameras and the table of deployments."
        )
