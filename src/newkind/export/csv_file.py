"""Export as one CSV file."""

from __future__ import annotations

from pathlib import Path

from newkind.atomic import replacing, to_bytes
from newkind.export.contents import ExportContents
from newkind.export.options import ExportOptions
from newkind.export.tables import items_csv

__all__ = ["write_csv"]


def write_csv(contents: ExportContents, out: Path, options: ExportOptions) -> None:  # noqa: ARG001 - all formats have it
    """Write all items as CSV, with their metadata."""
    with replacing(out, overwrite=False) as file:
        file.write(to_bytes(items_csv(contents)))
