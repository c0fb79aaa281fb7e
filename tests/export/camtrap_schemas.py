"""Table schemas of Camtrap DP 1.0.2, as far as they restrict what Newkind writes: types, required fields and values."""

from typing import Any

from newkind.export.camtrap_dp import COLUMNS

__all__ = ["SCHEMAS"]

TIME = {"type": "datetime", "format": "%Y-%m-%dT%H:%M:%S%z"}
SHARE = {"type": "number", "constraints": {"minimum": 0, "maximum": 1}}
FIELDS: dict[str, dict[str, Any]] = {
    "latitude": {"type": "number", "constraints": {"minimum": -90, "maximum": 90}},
    "longitude": {"type": "number", "constraints": {"minimum": -180, "maximum": 180}},
    "deploymentStart": TIME,
    "deploymentEnd": TIME,
    "timestamp": TIME,
    "eventStart": TIME,
    "eventEnd": TIME,
    "filePath": {"constraints": {"pattern": r"^(?=^[^./~])(^((?!\.{2}).)*$).*$"}},
    "filePublic": {"type": "boolean"},
    "fileMediatype": {"constraints": {"pattern": "^(image|video|audio)/.*$"}},
    "observationLevel": {"constraints": {"enum": ["media", "event"]}},
    "observationType": {"constraints": {"enum": ["animal", "human", "vehicle", "blank", "unknown", "unclassified"]}},
    "count": {"type": "integer", "constraints": {"minimum": 1}},
    "bboxX": SHARE,
    "bboxY": SHARE,
    "bboxWidth": SHARE,
    "bboxHeight": SHARE,
    "classificationMethod": {"constraints": {"enum": ["human", "machine"]}},
    "classificationProbability": SHARE,
}
REQUIRED = {
    "deployments": "deploymentID latitude longitude deploymentStart deploymentEnd",
    "media": "mediaID deploymentID timestamp filePath filePublic fileMediatype",
    "observations": "observationID deploymentID eventStart eventEnd observationLevel observationType",
}


def _schema(table: str) -> dict[str, Any]:
    fields = []
    for name in COLUMNS[table]:
        field = {"name": name, "type": "string"} | FIELDS.get(name, {})
        needed = {"required": True} if name in REQUIRED[table].split() else {}
        fields.append(field | {"constraints": field.get("constraints", {}) | needed})
    keys = {"media": ["deployments"], "observations": ["deployments", "media"]}.get(table, [])
    return {
        "fields": fields,
        "missingValues": [""],
        "primaryKey": f"{table.rstrip('s') if table != 'media' else 'media'}ID",
        "foreignKeys": [
            {
                "fields": "mediaID" if other == "media" else "deploymentID",
                "reference": {"resource": other, "fields": "mediaID" if other == "media" else "deploymentID"},
            }
            for other in keys
        ],
    }


SCHEMAS = {name: _schema(name) for name in COLUMNS}
