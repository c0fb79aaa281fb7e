"""Export as a Darwin Core Archive: a .zip file with occurrences, their images and a description."""

from __future__ import annotations

import json
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from xml.sax.saxutils import escape

from newkind import __version__
from newkind.atomic import replacing, to_bytes
from newkind.errors import DataError
from newkind.export.contents import ExportContents, ExportItem
from newkind.export.occasions import Occasion, find_occasions
from newkind.export.options import ExportOptions
from newkind.export.tables import item_attributes, items_csv
from newkind.runs.assignment import csv_line
from newkind.runs.decision_log import default_author

__all__ = ["write_darwin_core"]

DWC, DC = "http://rs.tdwg.org/dwc/terms/", "http://purl.org/dc/terms/"
TERMS = [
    "occurrenceID",
    "basisOfRecord",
    "occurrenceStatus",
    "scientificName",
    "verbatimIdentification",
    "identifiedBy",
    "identificationVerificationStatus",
    "identificationRemarks",
    "eventID",
    "eventDate",
    "decimalLatitude",
    "decimalLongitude",
    "geodeticDatum",
    "associatedMedia",
    "dynamicProperties",
]
MEDIA_TERMS = ("type", "format", "identifier", "title")


def write_darwin_core(contents: ExportContents, out: Path, options: ExportOptions) -> None:
    """Write the archive. Items without a category are no occurrences; items.csv in the archive has all items."""
    occasions = find_occasions(contents, options)
    rows, media = [], []
    for item, occasion in zip(contents.items, occasions, strict=True):
        if item.line.category:
            found = _occurrence(contents, item, occasion)
            rows.append([found.get(term, "") for term in TERMS])
            media.append([found["occurrenceID"], "StillImage", "", item.line.file, item.line.file.rpartition("/")[2]])
    if not rows:
        raise DataError("No item has a category, so there is no occurrence to export.", code="nothing-to-export")
    files = {
        "meta.xml": _meta(),
        "eml.xml": _description(contents),
        "occurrence.csv": _table(list(TERMS), rows),
        "multimedia.csv": _table(["occurrenceID", *MEDIA_TERMS], media),
        "items.csv": items_csv(contents),
    }
    with replacing(out, overwrite=False) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            entry = zipfile.ZipInfo(name)  # without the time of day, so that the same run gives the same file
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, to_bytes(text))


def _occurrence(contents: ExportContents, item: ExportItem, occasion: Occasion) -> dict[str, str]:
    """Terms of one item. New categories that nobody named have no scientific name."""
    line = item.line
    found = {
        "occurrenceID": f"{contents.run.folder.resolve().name}:{line.file}",
        "basisOfRecord": "MachineObservation",
        "occurrenceStatus": "present",
        "scientificName": line.category if item.is_named else "",
        "verbatimIdentification": line.category,
        "identifiedBy": "" if item.is_reviewed else f"Newkind {__version__}",
        "identificationVerificationStatus": "verified by a person" if item.is_reviewed else "unverified",
        "identificationRemarks": f"{line.status}, confidence {line.confidence:.4f}",
        "eventID": occasion.deployment,
        "eventDate": _date(occasion),
        "associatedMedia": line.file,
        "dynamicProperties": json.dumps(item_attributes(item) | {"metadata": item.metadata}),
    }
    if occasion.latitude is not None and occasion.longitude is not None:
        found |= {
            "decimalLatitude": f"{occasion.latitude:.10g}",
            "decimalLongitude": f"{occasion.longitude:.10g}",
            "geodeticDatum": "EPSG:4326",
        }
    return found


def _date(occasion: Occasion) -> str:
    """Time of an occasion, or its day if no more is known."""
    if occasion.time is None:
        return ""
    return occasion.time.date().isoformat() if occasion.is_day else occasion.time.isoformat()


def _table(header: list[str], rows: list[list[str]]) -> str:
    return "".join(csv_line([cell.replace("\r", " ").replace("\n", " ") for cell in row]) for row in [header, *rows])


def _meta() -> str:
    """Content of meta.xml: which column is which term."""
    about = 'encoding="UTF-8" fieldsTerminatedBy="," linesTerminatedBy="\\n" fieldsEnclosedBy="&quot;" ignoreHeaderLines="1"'
    core = "".join(f'    <field index="{i}" term="{DWC}{term}"/>\n' for i, term in enumerate(TERMS))
    media = "".join(f'    <field index="{i}" term="{DC}{term}"/>\n' for i, term in enumerate(MEDIA_TERMS, start=1))
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<archive xmlns="http://rs.tdwg.org/dwc/text/" metadata="eml.xml">\n'
        f'  <core {about} rowType="{DWC}Occurrence">\n    <files><location>occurrence.csv</location></files>\n'
        f'    <id index="0"/>\n{core}  </core>\n'
        f'  <extension {about} rowType="http://rs.gbif.org/terms/1.0/Multimedia">\n'
        "    <files><location>multimedia.csv</location></files>\n"
        f'    <coreid index="0"/>\n{media}  </extension>\n</archive>\n'
    )


def _description(contents: ExportContents) -> str:
    """Content of eml.xml."""
    title, person = escape(contents.run.folder.resolve().name), escape(default_author())
    who = f"<individualName><surName>{person}</surName></individualName>"
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<eml:eml xmlns:eml="https://eml.ecoinformatics.org/eml-2.2.0" packageId="newkind" system="newkind">\n'
        f"  <dataset>\n    <title>{title}</title>\n    <creator>{who}</creator>\n"
        f"    <pubDate>{datetime.now(UTC):%Y-%m-%d}</pubDate>\n    <language>eng</language>\n"
        f"    <abstract><para>Categories found by Newkind {__version__}, with all decisions up to event "
        f"{contents.answer.last}.</para></abstract>\n    <contact>{who}</contact>\n  </dataset>\n</eml:eml>\n"
    )
