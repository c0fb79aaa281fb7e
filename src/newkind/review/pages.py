"""Rendering of pages from templates; every text is escaped."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import HTMLResponse

from newkind import __version__
from newkind.data import printable
from newkind.data.wording import shell_quoted
from newkind.review.work_queue import progress_of
from newkind.review.workbench import Workbench

__all__ = ["render_message", "render_page"]

TEMPLATES = Path(__file__).parent / "templates"


@cache
def _environment() -> Environment:
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
        "param": _param,
    }
    environment.globals["version"] = __version__
    return environment


def render_page(workbench: Workbench, template: str, **values: Any) -> HTMLResponse:
    """Page from a template, with what every page shows: progress, number of the last event, name of the run."""
    snapshot = values.pop("snapshot", None) or workbench.snapshot
    events = workbench.decisions.log.events(max(snapshot.number - 200, 0))
    text = (
        _environment()
        .get_template(template)
        .render(
            snapshot=snapshot,
            progress=progress_of(snapshot, events),
            read_only=workbench.options.read_only,
            run_name=workbench.run.folder.resolve().name,
            images_note=_images_note(workbench),
            page=template.removesuffix(".html"),
            **values,
        )
    )
    return HTMLResponse(text)


def render_message(title: str, text: str, status: int) -> HTMLResponse:
    """Page with one message, such as that something does not exist."""
    page = _environment().get_template("message.html").render(title=title, text=text)
    return HTMLResponse(page, status)


def _images_note(workbench: Workbench) -> str:
    """Why images cannot be shown; empty if they can."""
    if workbench.images.note:
        return workbench.images.note.replace("newkind report RUN", "newkind review RUN")
    there = workbench.images.place >= 0
    if there.any() and workbench.originals.problem(int(there.argmax())) == "outside the data folder":
        command = f"newkind review {shell_quoted(str(workbench.run.folder))} --allow-outside"
        return f"Images of this run lie outside its data folder. To show them: {command}"
    return ""


def _breaks(text: str) -> Markup:
    """Escape, and allow line breaks after _, / and dots, but not in a name such as new-01."""
    parts = re.split(r"(\bnew-\d+\b)", printable(text))
    parts[::2] = [Markup("<wbr>").join(re.split(r"(?<=[_/.])(?=\w)", part)) for part in parts[::2]]
    parts[1::2] = [Markup('<span class="whole">{}</span>').format(part) for part in parts[1::2]]
    return Markup("").join(parts)


def _count(value: int, one: str = "", many: str = "") -> str:
    """1,234, or with a noun: 1 image, 1,234 images."""
    return f"{value:,} {one if value == 1 else many or one + 's'}" if one else f"{value:,}"


def _percent(value: float) -> str:
    return f"{100 * value:.0f}\u00a0%"


def _param(text: str) -> str:
    """Value of a parameter in an address."""
    return quote(text.encode("utf-8", "surrogatepass"), safe="")
