"""What Camtrap DP 1.0 requires of tables and of datapackage.json, restated from the copy that GBIF has registered.

The source is `data-packages/camtrap-dp/1.0` of https://rs.gbif.org: all fields in their order, with types, formats and constraints,
the keys between the tables, and the properties of the profile that a package of Newkind has or must have.
"""

from typing import Any

__all__ = ["PROFILE", "SCHEMAS"]

TIME = {"type": "datetime", "format": "%Y-%m-%dT%H:%M:%S%z"}
PATH = r"^(?=^[^./~])(^((?!\.{2}).)*$).*$"
FEATURES = (
    "roadPaved roadDirt trailHiking trailGame roadUnderpass roadOverpass roadBridge culvert burrow nestSite carcass "
    "waterSource fruitingTree"
)


def number(minimum: float | None = None, maximum: float | None = None, *, kind: str = "number") -> dict[str, Any]:
    bounds = {"minimum": minimum, "maximum": maximum}
    return {"type": kind, "constraints": {name: value for name, value in bounds.items() if value is not None}}


def one_of(words: str) -> dict[str, Any]:
    return {"constraints": {"enum": words.split()}}


TEXT: dict[str, Any] = {}
TRUE_OR_FALSE = {"type": "boolean"}
FIELDS: dict[str, dict[str, dict[str, Any]]] = {
    "deployments": {
        "deploymentID*": {"constraints": {"unique": True}},
        "locationID": TEXT,
        "locationName": TEXT,
        "latitude*": number(-90, 90),
        "longitude*": number(-180, 180),
        "coordinateUncertainty": number(1, kind="integer"),
        "deploymentStart*": TIME,
        "deploymentEnd*": TIME,
        "setupBy": TEXT,
        "cameraID": TEXT,
        "cameraModel": TEXT,
        "cameraDelay": number(0, kind="integer"),
        "cameraHeight": number(0),
        "cameraDepth": number(0),
        "cameraTilt": number(-90, 90, kind="integer"),
        "cameraHeading": number(0, 360, kind="integer"),
        "detectionDistance": number(0),
        "timestampIssues": TRUE_OR_FALSE,
        "baitUse": TRUE_OR_FALSE,
        "featureType": one_of(FEATURES),
        "habitat": TEXT,
        "deploymentGroups": TEXT,
        "deploymentTags": TEXT,
        "deploymentComments": TEXT,
    },
    "media": {
        "mediaID*": {"constraints": {"unique": True}},
        "deploymentID*": TEXT,
        "captureMethod": one_of("activityDetection timeLapse"),
        "timestamp*": TIME,
        "filePath*": {"constraints": {"pattern": PATH}},
        "filePublic*": TRUE_OR_FALSE,
        "fileName": TEXT,
        "fileMediatype*": {"constraints": {"pattern": "^(image|video|audio)/.*$"}},
        "exifData": {"type": "any"},
        "favorite": TRUE_OR_FALSE,
        "mediaComments": TEXT,
    },
    "observations": {
        "observationID*": {"constraints": {"unique": True}},
        "deploymentID*": TEXT,
        "mediaID": TEXT,
        "eventID": TEXT,
        "eventStart*": TIME,
        "eventEnd*": TIME,
        "observationLevel*": one_of("media event"),
        "observationType*": one_of("animal human vehicle blank unknown unclassified"),
        "cameraSetupType": one_of("setup calibration"),
        "scientificName": TEXT,
        "count": number(1, kind="integer"),
        "lifeStage": one_of("adult subadult juvenile"),
        "sex": one_of("female male"),
        "behavior": TEXT,
        "individualID": TEXT,
        "individualPositionRadius": number(0),
        "individualPositionAngle": number(-90, 90),
        "individualSpeed": number(0),
        "bboxX": number(0, 1),
        "bboxY": number(0, 1),
        "bboxWidth": number(1e-15, 1),
        "bboxHeight": number(1e-15, 1),
        "classificationMethod": one_of("human machine"),
        "classifiedBy": TEXT,
        "classificationTimestamp": TIME,
        "classificationProbability": number(0, 1),
        "observationTags": TEXT,
        "observationComments": TEXT,
    },
}
"""Fields of the tables; a star marks those that are required, and what has no type is a string."""
KEYS = {"deployments": [], "media": ["deploymentID"], "observations": ["deploymentID", "mediaID"]}
TABLE_OF = {"deploymentID": "deployments", "mediaID": "media"}


def _schema(table: str) -> dict[str, Any]:
    fields = []
    for marked, field in FIELDS[table].items():
        constraints = field.get("constraints", {}) | {"required": marked.endswith("*")}
        fields.append({"name": marked.rstrip("*"), "type": "string"} | field | {"constraints": constraints})
    return {
        "fields": fields,
        "missingValues": [""],
        "primaryKey": fields[0]["name"],
        "foreignKeys": [
            {"fields": key, "reference": {"resource": TABLE_OF[key], "fields": key}} for key in KEYS[table]
        ],
    }


SCHEMAS = {name: _schema(name) for name in FIELDS}
STRING = {"type": "string"}
DATE = {"type": "string", "format": "date", "pattern": r"^\d{4}-\d{2}-\d{2}$"}
NAME = {"type": "string", "pattern": "^([-a-z0-9._/])+$"}
ADDRESS = {"type": "string", "format": "uri", "pattern": r"1\.0"}
SAMPLING = "simpleRandom systematicRandom clusteredRandom experimental targeted opportunistic"


def _object(required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": required.split(), "properties": properties}


def _list(items: Any, n: int = 1) -> dict[str, Any]:
    return {"type": "array", "minItems": n, "items": items}


def _words(words: str) -> dict[str, Any]:
    return STRING | {"enum": words.split()}


POSITION = _list({"type": "number"}, 2)
PROFILE = {"$schema": "http://json-schema.org/draft-04/schema#"} | _object(
    "resources profile created contributors project spatial temporal taxonomic",
    name=NAME,
    title=STRING,
    description=STRING,
    profile=ADDRESS,
    created=STRING | {"format": "date-time"},
    contributors=_list(
        _object(
            "title",
            title=STRING | {"minLength": 1},
            role=_words("contact principalInvestigator rightsHolder publisher contributor"),
        )
    ),
    sources=_list(_object("title", title=STRING, version=STRING), 0),
    licenses=_list(_object("scope", scope=_words("data media")), 2),
    project=_object(
        "title samplingDesign captureMethod individualAnimals observationLevel",
        title=STRING,
        samplingDesign=_words(SAMPLING),
        captureMethod=_list(_words("activityDetection timeLapse")) | {"uniqueItems": True},
        individualAnimals={"type": "boolean"},
        observationLevel=_list(_words("media event"), 0),
    ),
    spatial=_object("type coordinates", type=_words("Polygon"), coordinates=_list(_list(POSITION, 4))),
    temporal=_object("start end", start=DATE, end=DATE),
    taxonomic=_list(_object("scientificName", scientificName=STRING), 0),
    resources=_list(
        _object(
            "name path profile schema",
            name=_words("deployments media observations"),
            path=STRING | {"pattern": PATH},
            profile=_words("tabular-data-resource"),
            schema=ADDRESS,
            mediatype=STRING | {"pattern": "^(.+)/(.+)$"},
        ),
        3,
    ),
)
