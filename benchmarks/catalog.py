"""Time and memory of reading a table and a folder with a million images into a catalog.

The files are empty files in a temporary folder. The plain version keeps a list of (Path, label) pairs and asks the file
system for each file, as dataset classes usually do.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from child_process import read_arguments

N_CLASSES = 1000


def make_files(root: Path, n: int) -> None:
    """Write `n` empty files in N_CLASSES folders, and a metadata.csv in which every second one is labelled."""
    per_class = n // N_CLASSES
    with open(root / "metadata.csv", "w") as table:
        table.write("file_name,label\n")
        for c in range(N_CLASSES):
            folder = root / f"class_{c:04d}"
            folder.mkdir()
            for i in range(per_class):
                (folder / f"image_{i:06d}.jpg").touch()
                table.write(f"class_{c:04d}/image_{i:06d}.jpg,{f'class_{c:04d}' if i % 2 else ''}\n")


def load_table(root: Path) -> object:
    """Catalog from metadata.csv."""
    from newkind.data import read_table

    return read_table(root / "metadata.csv")


def load_folder(root: Path) -> object:
    """Catalog from the folders."""
    from newkind.data import read_folder

    return read_folder(root)


def load_plain(root: Path) -> object:
    """List of existing paths and labels from metadata.csv."""
    import csv

    with open(root / "metadata.csv", newline="") as table:
        rows = [(root / row["file_name"], row["label"]) for row in csv.DictReader(table)]
    return [(path, label) for path, label in rows if path.is_file()]


LOADERS = {"table": load_table, "folder": load_folder, "plain": load_plain}


def measure(kind: str, root: Path) -> dict[str, float]:
    """Seconds, and megabytes of resident memory that the loaded catalog adds, in a separate process."""
    done = subprocess.run(
        [sys.executable, __file__, "--child", kind, str(root)], capture_output=True, text=True, check=True
    )
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


def child(kind: str, root: Path) -> None:
    """Load, and print seconds and megabytes as JSON."""
    import newkind.data  # noqa: F401 - imports are not measured

    process = psutil.Process()
    before, start = process.memory_info().rss, time.perf_counter()
    held = LOADERS[kind](root)
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "megabytes": (process.memory_info().rss - before) / 1e6}))
    del held


def main() -> None:
    arguments = read_arguments(__doc__)
    if arguments.child:
        child(arguments.child[0], Path(arguments.child[1]))
        return
    n = 100_000 if arguments.quick else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        make_files(Path(folder), n)
        results = {kind: measure(kind, Path(folder)) for kind in LOADERS}
    print(f"{n:,} images in {N_CLASSES:,} folders")
    print(f"{'':28}{'seconds':>10}{'MB':>10}")
    for kind, title in [
        ("table", "metadata.csv -> Catalog"),
        ("folder", "folder -> Catalog"),
        ("plain", "plain list of Paths"),
    ]:
        print(f"{title:28}{results[kind]['seconds']:>10.2f}{results[kind]['megabytes']:>10.0f}")
    slowest = max(results["table"]["seconds"], results["folder"]["seconds"])
    print(
        json.dumps(
            {
                "name": "catalog",
                "value": round(slowest, 2),
                "bar": 10.0,
                "ok": slowest < 10.0 and max(results[k]["megabytes"] for k in ("table", "folder")) < 1000,
                "unit": "s for the slower of table and folder",
                "megabytes": {kind: round(result["megabytes"]) for kind, result in results.items()},
                "speed-up over plain": round(results["plain"]["seconds"] / results["table"]["seconds"], 1),
            }
        )
    )


if __name__ == "__main__":
    main()
