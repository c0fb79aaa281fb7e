"""Throughput of `newkind serve` under many clients, as a share of batch prediction, against a bar of 80 %.

A run of generated images is made with random weights of DINOv2's size, which cost as much as real ones. Batch prediction and
the service compute the same images with the same model. Then more clients than the queue has places for ask at once: they must
get 503 and nothing else, and the service must answer afterwards.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
from PIL import Image

import newkind
from newkind.discovery import Discovery

BAR = 0.8
CLIENTS = 16
CROWD = 200
BACKBONE = "vit_small_patch14_dinov2.lvd142m"


def make_run(folder: Path, *, image_size: int) -> Discovery:
    """A run of 48 photographs of noise in two known and two new colours."""
    rng, rows = np.random.default_rng(0), ["file_name,label"]
    (folder / "data").mkdir()
    for i in range(48):
        small = rng.integers(0, 120, (12, 16, 3)) + 120 * np.eye(4, 3)[i % 4]
        picture = Image.fromarray(small.clip(0, 255).astype(np.uint8)).resize((640, 480), Image.Resampling.BICUBIC)
        picture.save(folder / "data" / f"{i:02d}.jpg", quality=90)
        rows.append(f"{i:02d}.jpg,{'ab'[i % 4] if i % 4 < 2 and i < 24 else ''}")
    (folder / "data" / "metadata.csv").write_text("\n".join(rows) + "\n")
    return newkind.discover(
        folder / "data",
        folder / "run",
        n_categories=4,
        effort="quick",
        backbone=BACKBONE,
        random_weights=True,
        image_size=image_size,
        device="cpu",
        report=False,
    )


def ask(host: str, images: list[bytes], codes: Counter[int], seconds: list[float], *, n: int) -> None:
    """Send n images one after the other on one connection."""
    connection = http.client.HTTPConnection(host, timeout=600)
    for content in itertools.islice(itertools.cycle(images), n):
        start = time.perf_counter()
        connection.request("POST", "/predict", content, {"Content-Type": "image/jpeg"})
        response = connection.getresponse()
        response.read()
        seconds.append(time.perf_counter() - start)
        codes[response.status] += 1
    connection.close()


def crowd(host: str, images: list[bytes], *, clients: int, n: int) -> tuple[Counter[int], list[float]]:
    """Codes and durations of the requests of many clients at once."""
    codes: Counter[int] = Counter()
    seconds: list[float] = []
    threads = [
        threading.Thread(target=ask, args=(host, images[i % 8 :] + images[: i % 8], codes, seconds), kwargs={"n": n})
        for i in range(clients)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return codes, seconds


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="Images of 112 pixels and fewer requests.")
    parser.add_argument("--requests", type=int, default=60, help="Requests per client. Default: 60.")
    wanted = parser.parse_args()
    n, image_size = (10, 112) if wanted.quick else (wanted.requests, 224)
    with tempfile.TemporaryDirectory() as name:
        run = make_run(Path(name), image_size=image_size)
        files = sorted((Path(name) / "data").glob("*.jpg"))
        many = [files[i % len(files)] for i in range(CLIENTS * n)]
        run.predict(*files)  # the first call loads the model
        start = time.perf_counter()
        run.predict(*many)
        batch = len(many) / (time.perf_counter() - start)
        command = [sys.executable, "-m", "newkind", "serve", str(run.run.folder), "--port", "0", "--device", "cpu"]
        server = subprocess.Popen([*command, "--max-queue", "64"], stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            host = urlsplit(server.stdout.readline().strip()).netloc
            images = [file.read_bytes() for file in files]
            crowd(host, images, clients=2, n=4)
            start = time.perf_counter()
            codes, seconds = crowd(host, images, clients=CLIENTS, n=n)
            served = len(seconds) / (time.perf_counter() - start)
            refused, _ = crowd(host, images, clients=CROWD, n=2)
            after, _ = crowd(host, images, clients=1, n=1)
            server.send_signal(signal.SIGTERM)
            ended = server.wait(60)
        finally:
            server.kill()
            server.wait(60)
    p50, p99 = np.quantile(seconds, [0.5, 0.99]).tolist()
    share = served / batch
    survived = set(codes) == set(after) == {200} and set(refused) == {200, 503} and ended == 0
    print(f"images of          {image_size} pixels, {len(seconds):,} requests of {CLIENTS} clients")
    print(f"batch predict      {batch:,.1f} images per s")
    print(f"service            {served:,.1f} images per s ({100 * share:.0f} % of it)")
    print(f"latency, median    {1000 * p50:.0f} ms")
    print(f"latency, 99 %      {1000 * p99:.0f} ms")
    print(f"overload           {CROWD} clients, places for 64: {dict(sorted(refused.items()))}, exit code {ended}")
    print(json.dumps({"name": "serve_load", "value": share, "bar": BAR, "ok": share >= BAR and survived, "unit": ""}))


if __name__ == "__main__":
    main()
