"""Values of cells of a table as texts."""

from __future__ import annotations

import datetime
import math
from typing import Any

from newkind.data.labels import UNLABELLED_WORDS
from newkind.schema import json_text

__all__ = ["cell_text", "group_name"]


def group_name(value: Any) -> str:
    """Name of a group, "" for none."""
    text = cell_text(value).strip()
    return "" if text.lower() in UNLABELLED_WORDS else text


def cell_text(value: Any) -> str:
    """Value of a cell as text: "" for none, dates in ISO format, lists and objects as JSON."""
    if isinstance(value, str):
        return value
    if (
        value is None
        or (isinstance(value, float) and math.isnan(value))
        or type(value).__name__ in ("NAType", "NaTType")
    ):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat(sep=" ") if isinstance(value, datetime.datetime) else value.isoformat()
    if isinstance(value, dict | list | tuple):
        return json_text(value)
    return str(value)
