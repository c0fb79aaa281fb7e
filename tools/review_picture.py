"""Screenshot of a page of `newkind review`, for the documentation. The run is not changed.

python tools/review_picture.py demo/run docs/review.jpg [--page "/category?id=new-01"] [--keys "Space v"] [--dark] [--phone]
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

NAMES = (os.environ.get("NEWKIND_BROWSER", ""), "chromium", "chromium-browser", "google-chrome")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, help="Run folder.")
    parser.add_argument("out", type=Path, help="PNG or JPEG file to write.")
    parser.add_argument("--page", default="/", help="Address of the page. Default: the queue.")
    parser.add_argument("--keys", default="", help="Keys to press, separated by spaces. They must not decide anything.")
    parser.add_argument("--height", type=int, default=900, help="Height of the window in pixels. Default: 900.")
    parser.add_argument("--dark", action="store_true", help="Use dark colours.")
    parser.add_argument("--phone", action="store_true", help="Use the width of a phone.")
    wanted = parser.parse_args()
    browser = next((path for name in NAMES if name and (path := shutil.which(name))), None)
    if browser is None:
        raise SystemExit("No Chromium found: run tools/install-browser.sh, or set NEWKIND_BROWSER to its path.")
    command = [sys.executable, "-m", "newkind", "review", str(wanted.run), "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        address = (server.stdout or sys.stdin).readline().strip()
        with sync_playwright() as playwright:
            started = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
            page = started.new_page(
                viewport={"width": 360 if wanted.phone else 1280, "height": wanted.height},
                color_scheme="dark" if wanted.dark else "light",
                device_scale_factor=2 if wanted.phone else 1,
            )
            base = address.split("/?")[0]
            page.goto(address)
            page.wait_for_url(f"{base}/")
            page.goto(base + wanted.page)
            page.locator("main[aria-busy=false]").wait_for()
            for key in wanted.keys.split():
                page.keyboard.press(key)
                page.wait_for_timeout(300)
            page.wait_for_load_state("networkidle")
            page.wait_for_timeout(500)
            page.screenshot(path=str(wanted.out))
            started.close()
    finally:
        server.terminate()
        server.wait(60)


if __name__ == "__main__":
    main()
