"""Which metadata columns say when and where an image was taken."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from datetime import timezone as Timezone

from newkind.errors import ConfigError, DataError

__all__ = ["ROLES", "coordinate", "find_roles", "is_date", "parse_time", "parse_timezone", "usual_column"]

logger = logging.getLogger(__name__)

ROLES: Mapping[str, tuple[str, ...]] = {
    "timestamp": ("timestamp", "datetime", "eventdate", "datetimeoriginal", "dateobserved", "capturedon", "date"),
    "time": ("time", "eventtime", "timeofday"),
    "latitude": ("latitude", "decimallatitude", "lat"),
    "longitude": ("longitude", "decimallongitude", "lon", "lng", "long"),
    "deployment": ("deploymentid", "deployment", "station", "site", "location", "locationid", "camera", "cameraid"),
}
"""Usual names of the columns of each role, without case, spaces and punctuation."""
BOUNDS = {"latitude": 90.0, "longitude": 180.0}
ZONE = re.compile(r"([+-])(\d\d):?(\d\d)")


def find_roles(columns: Sequence[str], given: Mapping[str, str]) -> dict[str, str]:
    """Column of each role that there is one for.

    Parameters
    ----------
    columns : sequence of str
        Metadata columns.
    given : mapping of str to str
        Columns that the user named, by role.

    Returns
    -------
    dict of str to str
        Role to column. Columns that were found by their name are logged.

    Raises
    ------
    ConfigError
        With the code `unknown-role` or `missing-column`.

    Examples
    --------
    >>> find_roles(["Decimal Latitude", "lon"], {})
    {'latitude': 'Decimal Latitude', 'longitude': 'lon'}
    """
    for role, column in given.items():
        if role not in ROLES:
            raise ConfigError(
                f"`columns` has the roles {', '.join(ROLES)}, not {role}.", code="unknown-role", role=role
            )
        if column not in columns:
            raise ConfigError(
                f"The run has no metadata column {column}; it has {', '.join(columns) or 'none'}.",
                code="missing-column",
                column=column,
            )
    found = {}
    for role, names in ROLES.items():
        chosen = given.get(role) or usual_column(columns, names)
        if chosen is not None:
            found[role] = chosen
            if role not in given and role != "time":  # which is used only beside dates
                logger.info(f"The column {chosen} is used as {role}.")
    return found


def usual_column(columns: Sequence[str], names: Sequence[str]) -> str | None:
    """First column with one of the usual names, which have neither case nor spaces nor punctuation; None if there is none."""
    plain = {re.sub(r"[^a-z0-9]", "", column.lower()): column for column in reversed(columns)}
    return next((plain[name] for name in names if name in plain), None)


def is_date(text: str) -> bool:
    """Whether a text is a day without a time; spreadsheets write midnight for it.

    Examples
    --------
    >>> is_date("2024-05-01"), is_date("2024-05-01 00:00:00"), is_date("2024-05-01 07:30")
    (True, True, False)
    """
    return re.fullmatch(r"\d{4}[-:]\d\d[-:]\d\d([ T]00:00:00)?", text.strip()) is not None


def parse_timezone(text: str | None) -> Timezone | None:
    """Time zone of a text such as +02:00 or Z; ConfigError (`timezone`) for others."""
    if text is None:
        return None
    found = ZONE.fullmatch(text)
    if text.upper() in ("Z", "UTC"):
        return UTC
    if found is None or int(found[2]) > 14 or int(found[3]) > 59:
        raise ConfigError(f"`timezone` must be like +02:00 or Z, got {text}.", code="timezone", setting="timezone")
    offset = timedelta(hours=int(found[2]), minutes=int(found[3]))
    return Timezone(-offset if found[1] == "-" else offset)


def parse_time(text: str, file: str, timezone: Timezone | None) -> datetime:
    """Time of an image with its time zone.

    Parameters
    ----------
    text : str
        ISO 8601, or as cameras write it (`2024:05:01 07:30:00`).
    file : str
        The image, for errors.
    timezone : timezone, optional
        Of times that do not name one.

    Raises
    ------
    DataError
        With the code `invalid-time` or `missing-timezone`.
    """
    try:
        found = datetime.fromisoformat(re.sub(r"^(\d{4}):(\d\d):(\d\d)", r"\1-\2-\3", text.strip()))
    except ValueError:
        raise DataError(
            f"The time of {file} is {text!r}, expected one such as 2024-05-01T07:30:00.",
            fix="Correct the column, or name another one with `columns`.",
            code="invalid-time",
            file=file,
        ) from None
    if found.tzinfo is not None:
        return found
    if timezone is None:
        raise DataError(
            f"The time of {file} ({text}) has no time zone.",
            fix="Name it with `timezone`, such as +02:00.",
            code="missing-timezone",
            file=file,
        )
    return found.replace(tzinfo=timezone)


def coordinate(text: str, role: str, file: str) -> float:
    """Latitude or longitude in degrees; DataError (`invalid-coordinate`) if it is none."""
    try:
        found = float(text)
    except ValueError:
        found = float("nan")
    if not abs(found) <= BOUNDS[role]:
        raise DataError(
            f"The {role} of {file} is {text!r}, expected degrees from {-BOUNDS[role]:g} to {BOUNDS[role]:g}.",
            fix="Correct the column, or name another one with `columns`.",
            code="invalid-coordinate",
            file=file,
        )
    return found
