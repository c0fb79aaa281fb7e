"""Export as a Camera Trap Data Package (Camtrap DP 1.0.2): deployments, media and observations.

Start and end of a deployment are those of the table of deployments. Without one, they are the times of its first and last
image, because a run does not know others.
"""

from __future__ import annotations

import json
import mimetypes
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from newkind import __version__
from newkind.atomic import new_folder, write_json, write_text
from newkind.errors import DataError
from newkind.export.contents import ExportContents, ExportItem
from newkind.export.occasions import Occasion, find_occasions
from newkind.export.options import ExportOptions
from newkind.runs.assignment import csv_line
from newkind.runs.decision_log import default_author

__all__ = ["COLUMNS", "write_camtrap_dp"]

VERSION = "1.0.2"
ADDRESS = f"https://raw.githubusercontent.com/tdwg/camtrap-dp/{VERSION}"
COLUMNS = {
    "deployments": [
        "deploymentID",
        "locationID",
        "locationName",
        "latitude",
        "longitude",
        "coordinateUncertainty",
        "deploymentStart",
        "deploymentEnd",
        "setupBy",
        "cameraID",
        "cameraModel",
        "cameraDelay",
        "cameraHeight",
        "cameraDepth",
        "cameraTilt",
        "cameraHeading",
        "detectionDistance",
        "timestampIssues",
        "baitUse",
        "featureType",
        "habitat",
        "deploymentGroups",
        "deploymentTags",
        "deploymentComments",
    ],
    "media": [
        "mediaID",
        "deploymentID",
        "captureMethod",
        "timestamp",
        "filePath",
        "filePublic",
        "fileName",
        "fileMediatype",
        "exifData",
        "favorite",
        "mediaComments",
    ],
    "observations": [
        "observationID",
        "deploymentID",
        "mediaID",
        "eventID",
        "eventStart",
        "eventEnd",
        "observationLevel",
        "observationType",
        "cameraSetupType",
        "scientificName",
        "count",
        "lifeStage",
        "sex",
        "behavior",
        "individualID",
        "individualPositionRadius",
        "individualPositionAngle",
        "individualSpeed",
        "bboxX",
        "bboxY",
        "bboxWidth",
        "bboxHeight",
        "classificationMethod",
        "classifiedBy",
        "classificationTimestamp",
        "classificationProbability",
        "observationTags",
        "observationComments",
    ],
}
"""All columns of the tables, in the order of the standard."""
OTHER_TYPES = {
    "human": ("human", "person", "people", "homo sapiens"),
    "vehicle": ("vehicle", "car", "truck", "bike"),
    "blank": ("blank", "empty", "nothing"),
}
"""Categories, without case, that are not animals."""
REQUIRED = ("timestamp", "latitude", "longitude", "deployment")
Row = dict[str, Any]


def write_camtrap_dp(contents: ExportContents, out: Path, options: ExportOptions) -> None:
    """Write datapackage.json, deployments.csv, media.csv and observations.csv into a folder."""
    occasions = find_occasions(contents, options, required=REQUIRED)
    tables = {
        "deployments": _deployments(occasions),
        "media": _media(contents, occasions),
        "observations": [_observation(contents, row, occasions[row]) for row in range(len(contents.items))],
    }
    with new_folder(out) as folder:
        for name, rows in tables.items():
            cells = [[_text(row.get(column)) for column in COLUMNS[name]] for row in rows]
            write_text(folder / f"{name}.csv", "".join(csv_line(line) for line in [COLUMNS[name], *cells]))
        write_json(folder / "datapackage.json", _package(contents, occasions, tables["observations"]))


def _deployments(occasions: Sequence[Occasion]) -> list[Row]:
    """One row per deployment; DataError (`conflicting-coordinates`) if one of them has two places."""
    groups: dict[str, list[Occasion]] = {}
    for occasion in occasions:
        groups.setdefault(occasion.deployment, []).append(occasion)
    rows = []
    for name, own in groups.items():
        if len({(occasion.latitude, occasion.longitude) for occasion in own}) > 1:
            raise DataError(
                f"The images of the deployment {name} have different coordinates.",
                fix="Name another column with `columns` as deployment.",
                code="conflicting-coordinates",
                deployment=name,
            )
        rows.append(
            {
                "deploymentID": name,
                "locationName": name,
                "latitude": own[0].latitude,
                "longitude": own[0].longitude,
                **_period(own),
            }
        )
    return rows


def _period(own: Sequence[Occasion]) -> Row:
    """Start and end of the deployment of images, and a comment if they are those of the images."""
    times, place = [occasion.time for occasion in own if occasion.time is not None], own[0].place
    start, end = (None, None) if place is None else (place.start, place.end)
    what = [name for name, value in (("Start", start), ("End", end)) if value is None]
    comment = {
        (): None,
        ("Start",): "The start is the time of the first image.",
        ("End",): "The end is the time of the last image.",
        ("Start", "End"): "Start and end are the times of the first and the last image.",
    }[tuple(what)]
    return {"deploymentStart": start or min(times), "deploymentEnd": end or max(times), "deploymentComments": comment}


def _media(contents: ExportContents, occasions: Sequence[Occasion]) -> list[Row]:
    """One row per image; boxes of one image share it."""
    rows: dict[str, Row] = {}
    for row, occasion in enumerate(occasions):
        name = _image_name(contents, row)
        kind = mimetypes.guess_type(name)[0] or contents.images.facts(row).media_type
        rows.setdefault(
            name,
            {
                "mediaID": name,
                "deploymentID": occasion.deployment,
                "timestamp": occasion.time,
                # A path of the standard neither starts with these characters nor has two dots in it.
                "filePath": re.sub(r"^[./~]+", "", name).replace("..", "%2E%2E"),
                "filePublic": "false",
                "fileName": name.rpartition("/")[2],
                "fileMediatype": kind,
            },
        )
    return list(rows.values())


def _image_name(contents: ExportContents, row: int) -> str:
    """Name of the image that an item is, or is in. Only runs from boxes have to open their data for it."""
    file = contents.items[row].line.file
    return contents.images.image_name(row) if "#" in file else file


def _observation(contents: ExportContents, row: int, occasion: Occasion) -> Row:
    item = contents.items[row]
    kind = _type(item)
    box = contents.images.box(row) if "#" in item.line.file else None
    tags = {"category": item.line.category, "status": item.line.status, "reviewed": "yes" if item.is_reviewed else "no"}
    media = _image_name(contents, row)
    return {
        "observationID": item.line.file,
        "deploymentID": occasion.deployment,
        "mediaID": media,
        "eventID": media,
        "eventStart": occasion.time,
        "eventEnd": occasion.time,
        "observationLevel": "media",
        "observationType": kind,
        "scientificName": item.line.category if kind == "animal" and item.is_named else None,
        "count": 1 if box is not None and kind == "animal" else None,
        **dict(zip(("bboxX", "bboxY", "bboxWidth", "bboxHeight"), box or (), strict=False)),
        "classificationMethod": "human" if item.is_reviewed else "machine",
        "classifiedBy": None if item.is_reviewed else f"Newkind {__version__}",
        "classificationProbability": None if item.is_reviewed else item.line.confidence,
        "observationTags": "|".join(f"{key}:{value.replace('|', '/')}" for key, value in tags.items() if value),
        "observationComments": json.dumps(item.metadata) if item.metadata else None,
    }


def _type(item: ExportItem) -> str:
    """Type of an observation; items without a category are unclassified."""
    if not item.line.category:
        return "unclassified"
    name = item.line.category.casefold()
    return next((kind for kind, names in OTHER_TYPES.items() if name in names), "animal")


def _package(contents: ExportContents, occasions: Sequence[Occasion], observations: Sequence[Row]) -> Row:
    """Content of datapackage.json."""
    times = [occasion.time for occasion in occasions if occasion.time is not None]
    title = contents.run.folder.resolve().name
    species = sorted({row["scientificName"] for row in observations if row["scientificName"]})
    return {
        "name": re.sub(r"[^a-z0-9._-]", "-", title.lower()),
        "title": title,
        "description": f"Categories found by Newkind {__version__}, with all decisions up to event {contents.answer.last}.",
        "profile": f"{ADDRESS}/camtrap-dp-profile.json",
        "created": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "contributors": [{"title": default_author(), "role": "contact"}],
        "sources": [{"title": "Newkind", "version": __version__}],
        "project": {
            "title": title,
            "samplingDesign": "opportunistic",
            "captureMethod": ["activityDetection"],
            "individualAnimals": False,
            "observationLevel": ["media"],
        },
        "spatial": _bounds(occasions),
        "temporal": {"start": min(times).strftime("%Y-%m-%d"), "end": max(times).strftime("%Y-%m-%d")},
        "taxonomic": [{"scientificName": name} for name in species],
        "resources": [
            {
                "name": name,
                "path": f"{name}.csv",
                "profile": "tabular-data-resource",
                "format": "csv",
                "mediatype": "text/csv",
                "encoding": "utf-8",
                "schema": f"{ADDRESS}/{name}-table-schema.json",
            }
            for name in COLUMNS
        ],
    }


def _bounds(occasions: Sequence[Occasion]) -> Row:
    """Rectangle of all coordinates as GeoJSON."""
    x = [occasion.longitude for occasion in occasions if occasion.longitude is not None]
    y = [occasion.latitude for occasion in occasions if occasion.latitude is not None]
    west, east, south, north = min(x), max(x), min(y), max(y)
    ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
    return {"type": "Polygon", "coordinates": [ring]}


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    if isinstance(value, float):
        return f"{value:.10g}"
    return "" if value is None else str(value)
