"""A table of deployments: where each camera, net or trap was, and from when to when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from datetime import timezone as Timezone
from pathlib import Path
from typing import Any

from newkind.data.cells import cell_text
from newkind.data.names import printable
from newkind.data.records import TABLE_SUFFIXES, open_records
from newkind.errors import DataError
from newkind.export.roles import ROLES, coordinate, is_date, parse_time, usual_column

__all__ = ["Deployment", "read_deployments"]

PERIOD = {
    "start": ("deploymentstart", "start", "startdate", "startdatetime", "setup", "setupdate", "from"),
    "end": ("deploymentend", "end", "enddate", "enddatetime", "retrieval", "retrievaldate", "to"),
}
"""Usual names of the columns with start and end, without case, spaces and punctuation."""
DAY = timedelta(days=1) - timedelta(seconds=1)


@dataclass(frozen=True)
class Deployment:
    """Place and period of a camera, station or site.

    Parameters
    ----------
    latitude, longitude : float
        In degrees.
    start, end : datetime, optional
        With time zone.
    """

    latitude: float
    longitude: float
    start: datetime | None = None
    end: datetime | None = None


def read_deployments(path: Path, timezone: Timezone | None) -> dict[str, Deployment]:
    """Deployments of a table (.csv, .tsv, .xlsx, .parquet, .jsonl) by name.

    Parameters
    ----------
    path : Path
        Table with a column of names (`deployment`, `site`, `station` or the like), `latitude`, `longitude`, and optionally
        `start` and `end`.
    timezone : timezone, optional
        Of times that do not name one.

    Returns
    -------
    dict of str to Deployment

    Raises
    ------
    DataError
        With the code `unsupported-format`, `missing-column`, `missing-value`, `duplicate-deployment`, or as from `coordinate`,
        `parse_time` and `open_records`.
    """
    if path.suffix.lower() not in TABLE_SUFFIXES:
        raise DataError(
            f"{path} is not a table.",
            fix=f"Use one of {', '.join(TABLE_SUFFIXES)}.",
            code="unsupported-format",
            path=path,
        )
    found: dict[str, Deployment] = {}
    with open_records(path) as records:
        at = _columns(path, records.header)
        for line, values in records.rows:
            texts = {role: cell_text(values[i]).strip() for role, i in at.items()}
            if not any(texts.values()):
                continue
            where = f"{path}, line {line}"
            name, made = texts["deployment"], _deployment(texts, where, timezone)
            if found.setdefault(name, made) != made:
                raise DataError(
                    f"{where}: the deployment {printable(name)} is in an earlier line with other values.",
                    fix="Keep one of the two lines, or give each deployment a name of its own.",
                    code="duplicate-deployment",
                    path=path,
                    line=line,
                )
    return found


def _columns(path: Path, header: tuple[str, ...]) -> dict[str, int]:
    """Position of the column of each role."""
    names = {role: ROLES[role] for role in ("deployment", "latitude", "longitude")} | PERIOD
    found = {role: usual_column(header, usual) for role, usual in names.items()}
    if missing := [role for role in ("deployment", "latitude", "longitude") if found[role] is None]:
        raise DataError(
            f"{path} has the columns {', '.join(map(printable, header)) or '(none)'}, but none of them is called "
            f"{' or '.join(missing)}.",
            fix="A table of deployments has the columns deployment (or site), latitude and longitude, and may have start and end.",
            code="missing-column",
            column=missing[0],
            path=path,
        )
    return {role: header.index(column) for role, column in found.items() if column is not None}


def _deployment(texts: dict[str, str], where: str, timezone: Timezone | None) -> Deployment:
    """Deployment of one row; `where` names the row."""
    for role in ("deployment", "latitude", "longitude"):
        if not texts[role]:
            raise DataError(f"{where}: the {role} is empty.", code="missing-value", role=role)
    period: dict[str, Any] = {
        role: parse_time(texts[role], where, timezone) if texts.get(role) else None for role in PERIOD
    }
    if period["end"] is not None and is_date(texts["end"]):
        period["end"] += DAY  # a day without a time ends with it
    return Deployment(
        coordinate(texts["latitude"], "latitude", where), coordinate(texts["longitude"], "longitude", where), **period
    )
