"""A window of the review page: open it, go to a page, read its messages."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, Page, expect
from server_process import Server

from browser_visit import Visit
from newkind.runs.answer import Answer
from newkind.runs.current_answer import current_answer
from newkind.runs.run import Run

__all__ = ["answer_of", "go", "ready", "told", "visit"]


def visit(browser: Browser, server: Server, **options: object) -> Visit:
    """Open the address of a server, as a user does."""
    opened = Visit(browser, server.address, **options)  # type: ignore[arg-type]
    opened.page.wait_for_url(f"{server.base}/")
    ready(opened.page)
    return opened


def ready(page: Page) -> None:
    """Wait until the script of a page has loaded what it shows."""
    page.locator("main[aria-busy=false]").wait_for()


def go(page: Page, server: Server, path: str) -> None:
    """Open a page and wait until it is complete."""
    page.goto(server.base + path)
    ready(page)


def answer_of(tmp_path: Path) -> Answer:
    """Current answer of the run in `tmp_path / "run"`."""
    return current_answer(Run(tmp_path / "run"))


def told(page: Page, text: str) -> None:
    """Expect a message of the page."""
    expect(page.locator("#messages")).to_contain_text(text)
