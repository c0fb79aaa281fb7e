"""A page opened in Chromium, with everything that it logs and requests."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

__all__ = ["ARGUMENTS", "Visit", "find_browser"]

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MAC = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
# Without a sandbox, because tests may run as root in a container; and without requests of its own.
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
SECONDS = 60


def find_browser() -> str:
    """Path of a Chromium or Chrome; fails the test if there is none."""
    wanted = os.environ.get("NEWKIND_BROWSER")
    found = next(filter(None, map(shutil.which, [wanted] if wanted else [*NAMES, MAC])), None)
    if found is None:
        pytest.fail("No Chromium found: run `make browser` (Debian, Ubuntu), or set NEWKIND_BROWSER to its path.")
    return found


class Visit:
    """A page, its console messages and errors (`messages`), and its requests."""

    def __init__(
        self, browser: Browser, page: Path | str, *, width: int = 1280, height: int = 900, **options: Any
    ) -> None:
        self.context = browser.new_context(viewport={"width": width, "height": height}, **options)
        self.context.set_default_timeout(1000 * SECONDS)
        self.page: Page = self.context.new_page()
        self.messages: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.messages.append(message.text))
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("dialog", self._dismiss)
        self.page.goto(page if isinstance(page, str) else page.resolve().as_uri())

    def _dismiss(self, dialog: Any) -> None:
        self.messages.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def __enter__(self) -> Visit:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.context.close()

    def wait_until(self, expression: str) -> None:
        """Wait until a JavaScript expression is true. Playwright's own function needs `eval`, which the page forbids."""
        for _ in range(20 * SECONDS):
            if self.page.evaluate(expression):
                return
            self.page.wait_for_timeout(50)
        raise AssertionError(f"not true after {SECONDS} s: {expression}")

    def point_of(self, i: int) -> tuple[float, float]:
        """Position of point i of the map on the screen, after scrolling there."""
        canvas = self.page.locator(".map .points")
        canvas.scroll_into_view_if_needed()
        box = canvas.bounding_box()
        assert box is not None
        x, y = canvas.evaluate("(canvas, i) => canvas.locate(i)", i)
        return box["x"] + x, box["y"] + y
