"""Screenshot of a section of a report, for the documentation.

python tools/report_picture.py demo/run/report.html docs/report.png [--at map] [--dark] [--phone]
"""

from __future__ import annotations

import argparse
import os
import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright

NAMES = (os.environ.get("NEWKIND_BROWSER", ""), "chromium", "chromium-browser", "google-chrome")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("report", type=Path, help="Report to open.")
    parser.add_argument("out", type=Path, help="PNG file to write.")
    parser.add_argument(
        "--at", default="top", help="Id of the section to show: top, new, map, questionable, accuracy, ..."
    )
    parser.add_argument("--height", type=int, default=1500, help="Height of the window in pixels. Default: 1500.")
    parser.add_argument("--dark", action="store_true", help="Use dark colours.")
    parser.add_argument("--phone", action="store_true", help="Use the width of a phone.")
    wanted = parser.parse_args()
    browser = next((path for name in NAMES if name and (path := shutil.which(name))), None)
    if browser is None:
        raise SystemExit("No Chromium found: run tools/install-browser.sh, or set NEWKIND_BROWSER to its path.")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
        page = started.new_page(
            viewport={"width": 390 if wanted.phone else 1220, "height": wanted.height},
            color_scheme="dark" if wanted.dark else "light",
            device_scale_factor=2 if wanted.phone else 1,
        )
        page.goto(wanted.report.resolve().as_uri())
        page.locator(f"#{wanted.at}").evaluate("section => section.scrollIntoView()")
        page.wait_for_timeout(500)
        page.screenshot(path=str(wanted.out))
        started.close()


if __name__ == "__main__":
    main()
