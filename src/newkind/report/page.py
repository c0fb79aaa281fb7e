"""From the report's parts to one HTML file: everything escaped, nothing fetched, no script but its own."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from numpy.typing import NDArray

from newkind import __version__
from newkind.data.names import printable
from newkind.report.contents import STATUSES, RunContents
from newkind.report.map import Atlas
from newkind.report.thumbnails import Sheets

__all__ = ["MARK", "Album", "Caption", "anchors_of", "map_data", "render"]

TEMPLATES = Path(__file__).parent / "templates"
SCRIPTS = ("page.js", "map.js")
MARK = '<meta name="generator" content="Newkind '
"""By which a report is known to be one of ours."""


@dataclass(frozen=True)
class Caption:
    """What is said of one image."""

    line: int
    file: str
    name: str
    """Of its category."""
    anchor: str
    status: str
    confidence: float
    second: str
    second_anchor: str
    second_confidence: float


class Album:
    """Thumbnails by line; each is handed out once, so that each stands in the file once."""

    def __init__(self, thumbnails: dict[int, str]) -> None:
        self._left = dict(thumbnails)
        self._all = frozenset(thumbnails)

    def has(self, line: int) -> bool:
        return line in self._all

    def take(self, line: int) -> str:
        """The picture itself the first time, "" after that: the page's script copies it from there."""
        return self._left.pop(line, "")


def anchors_of(contents: RunContents) -> list[str]:
    """(K,): the name by which a category's section can be linked to; readable, plain ASCII, unique."""
    taken: set[str] = set()
    found = []
    for k, category in enumerate(contents.categories):
        slug = re.sub(r"[^a-z0-9]+", "-", category.name.lower()).strip("-")[:40]
        anchor = f"c-{slug}" if slug else f"c-{k}"
        while anchor in taken:
            anchor += f"-{k}"
        taken.add(anchor)
        found.append(anchor)
    return found


def map_data(contents: RunContents, atlas: Atlas, sheets: Sheets, anchors: list[str]) -> dict[str, Any]:
    """For the map's script: arrays as base64, little-endian."""
    lines = atlas.lines
    names = [printable(contents.files[int(i)]) for i in lines]
    prefix = _common_folder(names)
    slots = np.array([sheets.slots.get(int(i), -1) for i in lines], dtype="<i4")
    return {
        "n": len(lines),
        "points": _base64((atlas.points * 65535).round().astype("<u2")),
        "lines": _base64(lines.astype("<i4")),
        "category": _base64(contents.category[lines].astype("<u2" if len(contents.categories) < 65536 else "<u4")),
        "wide": len(contents.categories) >= 65536,
        "status": _base64(contents.status[lines]),
        "sure": _base64((100 * contents.confidence[lines]).round().astype(np.uint8)),
        "slots": _base64(slots),
        "prefix": prefix,
        "names": [name[len(prefix) :] for name in names],
        "categories": [
            {"name": printable(category.name), "new": category.status == "new", "anchor": anchor}
            for category, anchor in zip(contents.categories, anchors, strict=True)
        ],
        "statuses": STATUSES,
        "sheets": sheets.uris,
        "side": sheets.side,
        "columns": sheets.columns,
    }


def render(contents: RunContents, album: Album, anchors: list[str], **parts: Any) -> str:
    """The whole page. `parts` are what the templates speak of."""
    # Autoescape is on for every template, whatever its name.
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "count": _count,
        "percent": _percent,
        "shown": printable,
        "breaks": _breaks,
        "embed": _embed,
    }

    def caption(line: int) -> Caption:
        first, second = contents.categories[contents.category[line]], contents.categories[contents.second[line]]
        return Caption(
            line,
            printable(contents.files[line]),
            printable(first.name),
            anchors[contents.category[line]],
            STATUSES[contents.status[line]],
            float(contents.confidence[line]),
            printable(second.name),
            anchors[contents.second[line]],
            float(contents.second_confidence[line]),
        )

    style = (TEMPLATES / "style.css").read_text(encoding="utf-8")
    script = "\n".join((TEMPLATES / name).read_text(encoding="utf-8") for name in SCRIPTS)
    return environment.get_template("page.html").render(
        contents=contents,
        album=album,
        anchors=anchors,
        caption=caption,
        version=__version__,
        mark=Markup(MARK),  # noqa: S704 - our own constant
        style=Markup(style),  # noqa: S704 - files of this package
        script=Markup(script),  # noqa: S704
        policy=_policy(style, script),
        **parts,
    )


def _policy(style: str, script: str) -> str:
    """Nothing from outside, pictures from the file itself, and exactly this style and this script."""
    return (
        f"default-src 'none'; img-src data:; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _embed(value: Any) -> Markup:
    """JSON inside a script element: no character in it can end the element or start markup."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704 - escaped in the lines above


def _breaks(text: str) -> Markup:
    """Escaped, and a line may end after a _, a slash or a dot: 054.Rose_breasted_Grosbeak has no spaces."""
    return Markup("<wbr>").join(re.split(r"(?<=[_/.])(?=\w)", text))


def _base64(values: NDArray[Any]) -> str:
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode()


def _common_folder(names: list[str]) -> str:
    """What all names begin with, up to a slash."""
    if not names:
        return ""
    low, high = min(names), max(names)
    length = next((i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), min(len(low), len(high)))
    return low[: low.rfind("/", 0, length) + 1]


def _count(value: int, one: str = "", many: str = "") -> str:
    """1,234, or with a noun: 1 image, 1,234 images."""
    return f"{value:,} {one if value == 1 else many or one + 's'}" if one else f"{value:,}"


def _percent(value: float, digits: int = 0) -> str:
    return f"{100 * value:.{digits}f}\u00a0%"
