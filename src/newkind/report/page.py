"""Page as one HTML file: every text is escaped, nothing is fetched, and only its own script can run."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from newkind import __version__
from newkind.data import printable
from newkind.report.contents import STATUSES, RunContents
from newkind.runs.run import REPORT_MARK

__all__ = ["Caption", "ThumbnailPool", "anchors_of", "render"]

TEMPLATES = Path(__file__).parent / "templates"
SCRIPTS = (
    "images.js",
    "dialog.js",
    "gallery.js",
    "navigation.js",
    "map_view.js",
    "map_points.js",
    "map_labels.js",
    "map_hover.js",
    "map.js",
)


@dataclass(frozen=True)
class Caption:
    """Texts and numbers about one image: its file, its category, and the second category."""

    line: int
    file: str
    name: str
    anchor: str
    status: str
    confidence: float
    second: str
    second_confidence: float


class ThumbnailPool:
    """Thumbnails by row; each is handed out once, so that the file contains it once."""

    def __init__(self, thumbnails: dict[int, str]) -> None:
        self._left = dict(thumbnails)
        self._all = frozenset(thumbnails)

    def has(self, line: int) -> bool:
        """Whether the row has a thumbnail."""
        return line in self._all

    def take(self, line: int) -> str:
        """Return the data URI the first time, and "" after that: the page's script copies it."""
        return self._left.pop(line, "")


def anchors_of(contents: RunContents) -> list[str]:
    """Ids of the categories' sections: readable, plain ASCII, unique; length K."""
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


def render(contents: RunContents, thumbnails: dict[int, str], anchors: list[str], **parts: Any) -> str:
    """Render the whole page. `parts` are the other variables of the templates."""

    def caption(line: int) -> Caption:
        first, second = contents.categories[contents.category[line]], contents.categories[contents.second[line]]
        return Caption(
            line=line,
            file=printable(contents.files[line]),
            name=printable(first.name),
            anchor=anchors[contents.category[line]],
            status=STATUSES[contents.status[line]],
            confidence=float(contents.confidence[line]),
            second=printable(second.name),
            second_confidence=float(contents.second_confidence[line]),
        )

    style = (TEMPLATES / "style.css").read_text(encoding="utf-8")
    script = "\n".join((TEMPLATES / "scripts" / name).read_text(encoding="utf-8") for name in SCRIPTS)
    return (
        _environment()
        .get_template("page.html")
        .render(
            contents=contents,
            thumbnails=ThumbnailPool(thumbnails),
            anchors=anchors,
            caption=caption,
            version=__version__,
            mark=Markup(REPORT_MARK),  # noqa: S704 - a constant
            style=Markup(style),  # noqa: S704 - a file of this package
            script=Markup(script),  # noqa: S704 - files of this package
            policy=_policy(style, script),
            **parts,
        )
    )


def _environment() -> Environment:
    """Jinja environment that escapes in every template, whatever its name."""
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
    return environment


def _policy(style: str, script: str) -> str:
    """Content-Security-Policy: no requests, images from the file itself, exactly this style and this script."""
    return (
        f"default-src 'none'; img-src data:; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _embed(value: Any) -> Markup:
    """JSON for a script element, without characters that could end the element or start markup."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704 - escaped in the lines above


def _breaks(text: str) -> Markup:
    """Escape, and allow line breaks after _, / and dots: 054.Rose_breasted_Grosbeak has no spaces."""
    return Markup("<wbr>").join(re.split(r"(?<=[_/.])(?=\w)", text))


def _count(value: int, one: str = "", many: str = "") -> str:
    """1,234, or with a noun: 1 image, 1,234 images."""
    return f"{value:,} {one if value == 1 else many or one + 's'}" if one else f"{value:,}"


def _percent(value: float, digits: int = 0) -> str:
    return f"{100 * value:.{digits}f}\u00a0%"
