"""Latency of cached thumbnails while 50 clients read a run of 100,000 images: the 99th percentile, against a bar of 200 ms.

A run of generated images is written, its thumbnails are put into the cache file, and a server process is started. Clients are
threads of a second process, each with one connection. They ask for random thumbnails, as a person who scrolls does.
"""

from __future__ import annotations

import argparse
import http.client
import io
import json
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
from PIL import Image

from newkind.review.originals import Originals
from newkind.review.thumbnails import SIDE, Thumbnails
from newkind.review.workbench import Workbench
from newkind.runs.assignments import Assignment, Category, assignments_csv, category_rows
from newkind.runs.run import Run

BAR = 0.2
CLIENTS = 50
N_FILES = 200  # different images; the run names them through links in the same folder
CATEGORIES = 200


def write_run(folder: Path, n: int) -> Run:
    """A run of n images: hard links to a few image files, so that each has a path of its own."""
    rng = np.random.default_rng(0)
    data = folder / "data"
    data.mkdir()
    for i in range(min(N_FILES, n)):
        small = rng.integers(0, 255, (12, 16, 3), dtype=np.uint8)
        Image.fromarray(small).resize((320, 240), Image.Resampling.BICUBIC).save(data / f"{i:06d}.jpg", quality=85)
    for i in range(N_FILES, n):
        os.link(data / f"{i % N_FILES:06d}.jpg", data / f"{i:06d}.jpg")
    names = [f"new-{k + 1:03d}" for k in range(CATEGORIES)]
    lines = [
        Assignment(f"{i:06d}.jpg", names[i % CATEGORIES], "new", 0.9, names[(i + 1) % CATEGORIES], 0.05)
        for i in range(n)
    ]
    (folder / "run").mkdir(parents=True, exist_ok=True)
    run = Run(folder / "run")
    run.write_config({"data": str(data), "root": str(data), "fingerprint": "load"})
    run.write_json(
        run.categories_file, category_rows([Category(name, "new", k, 1, 0.9) for k, name in enumerate(names)])
    )
    run.write_features(rng.normal(size=(n, 64)).astype(np.float32))
    run.write_text(run.assignments_file, assignments_csv(lines))
    return run


def fill_cache(originals: Originals, folder: Path, n: int) -> float:
    """Write the thumbnails of all images into the cache file as the server does; equal files share one. Returns megabytes."""
    Thumbnails(originals, folder).close()
    made = [originals.thumbnail(i, SIDE) for i in range(min(N_FILES, n))]
    with sqlite3.connect(folder / "thumbnails.sqlite") as connection:
        rows = (
            (f"{originals.key(i)}-{SIDE}", made[i % N_FILES].media_type, made[i % N_FILES].content) for i in range(n)
        )
        connection.executemany("INSERT OR REPLACE INTO thumbnails VALUES (?, ?, ?)", rows)
    connection.close()
    return sum(len(made[i % N_FILES].content) for i in range(n)) / 1e6


def open_session(address: str) -> str:
    """Exchange the token for the cookie."""
    place = urlsplit(address)
    connection = http.client.HTTPConnection(place.netloc, timeout=60)
    connection.request("GET", f"/?{place.query}")
    cookie = (connection.getresponse().getheader("Set-Cookie") or "").split(";")[0]
    connection.close()
    return cookie


def read_thumbnails(host: str, cookie: str, lines: list[int], seconds: list[float]) -> None:
    """Ask for thumbnails one after the other on one connection; appends the duration of each request."""
    connection = http.client.HTTPConnection(host, timeout=60)
    for line in lines:
        start = time.perf_counter()
        connection.request("GET", f"/thumb/{line}", headers={"Cookie": cookie})
        response = connection.getresponse()
        content = response.read()
        seconds.append(time.perf_counter() - start)
        if response.status != 200:
            raise SystemExit(f"/thumb/{line}: {response.status} {content!r}")
    Image.open(io.BytesIO(content)).verify()
    connection.close()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="5,000 images and fewer requests.")
    parser.add_argument("--images", type=int, default=100_000, help="Number of images. Default: 100,000.")
    parser.add_argument("--requests", type=int, default=400, help="Requests per client. Default: 400.")
    wanted = parser.parse_args()
    n, requests = (5_000, 40) if wanted.quick else (wanted.images, wanted.requests)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["NEWKIND_CACHE"] = str(folder / "cache")
        run = write_run(folder, n)
        workbench = Workbench(run)
        workbench.thumbnails.close()
        megabytes = fill_cache(workbench.originals, folder / "cache" / "thumbnails", n)
        command = [sys.executable, "-m", "newkind", "review", str(run.folder), "--port", "0"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            address = server.stdout.readline().strip()
            host, cookie = urlsplit(address).netloc, open_session(address)
            seconds: list[float] = []
            clients = [
                threading.Thread(
                    target=read_thumbnails,
                    args=(host, cookie, random.Random(i).choices(range(n), k=requests), seconds),
                )
                for i in range(CLIENTS)
            ]
            start = time.perf_counter()
            for client in clients:
                client.start()
            for client in clients:
                client.join()
            total = time.perf_counter() - start
        finally:
            server.terminate()
            server.wait(60)
    if len(seconds) != CLIENTS * requests:
        raise SystemExit("some clients failed")
    p50, p99 = np.quantile(seconds, [0.5, 0.99]).tolist()
    print(f"images             {n:,} ({megabytes:,.0f} MB of thumbnails)")
    print(f"clients            {CLIENTS}, {requests} requests each")
    print(f"requests per s     {len(seconds) / total:,.0f}")
    print(f"latency, median    {1000 * p50:.0f} ms")
    print(f"latency, 99 %      {1000 * p99:.0f} ms")
    print(json.dumps({"name": "review_load", "value": p99, "bar": BAR, "ok": p99 <= BAR, "unit": "s"}))


if __name__ == "__main__":
    main()
