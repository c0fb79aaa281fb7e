"""Memory and time per entry of a table with three million generated names, read into a catalog and inspected; slopes for ten million.

Unlike `catalog.py`, no file exists: the features of the entries are an .npy file with one column, so that only names, labels and the
inspection are measured. Memory is the peak of the process beyond its imports.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from child_process import read_arguments

N_CLASSES, BAR = 1000, 600.0  # ten million entries in 6 GB


def make_table(root: Path, n: int) -> None:
    """Write a table with n names, every fifth labelled, and their features (n, 1)."""
    np.save(root / "features.npy", np.ones((n, 1), dtype=np.float32))
    with open(root / "table.csv", "w", encoding="utf-8") as table:
        table.write("file_name,label\n")
        table.writelines(
            f"camera_{i % 97:02d}/2026-07/{i:09d}.jpg,{f'class_{i % N_CLASSES:04d}' if i % 5 == 0 else ''}\n"
            for i in range(n)
        )


def peak_megabytes() -> float:
    """Peak resident memory of this process so far."""
    status = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in status if line.startswith("VmHWM")).split()[1]) / 1e3


def child(root: Path) -> None:
    """Read and inspect, and print seconds and megabytes as JSON."""
    from newkind.data import inspect_collection, open_data

    before, start = peak_megabytes(), time.perf_counter()
    collection = open_data(root / "features.npy", labels=root / "table.csv")
    read = time.perf_counter() - start
    inspect_collection(collection)
    found = {"read": read, "inspect": time.perf_counter() - start - read, "megabytes": peak_megabytes() - before}
    print(json.dumps(found))


def measure(n: int) -> dict[str, float]:
    """Seconds and megabytes for n entries, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        make_table(Path(folder), n)
        command = [sys.executable, __file__, "--child", "read", folder]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    arguments = read_arguments(__doc__)
    if arguments.child:
        child(Path(arguments.child[1]))
        return
    few, many = (50_000, 200_000) if arguments.quick else (1_000_000, 3_000_000)
    found = {n: measure(n) for n in (few, many)}
    print(f"{'entries':>12}{'read, s':>10}{'inspect, s':>12}{'MB':>10}")
    for n, row in found.items():
        print(f"{n:>12,}{row['read']:>10.1f}{row['inspect']:>12.1f}{row['megabytes']:>10.0f}")
    slopes = {name: (found[many][name] - found[few][name]) / (many - few) for name in found[few]}
    ten = {name: found[many][name] + (10_000_000 - many) * max(slope, 0.0) for name, slope in slopes.items()}
    print(f"{'10,000,000':>12}{ten['read']:>10.1f}{ten['inspect']:>12.1f}{ten['megabytes']:>10.0f}   extrapolated")
    value = 1e6 * slopes["megabytes"]
    line = {"name": "catalog_entries", "value": round(value), "bar": BAR, "ok": value < BAR, "unit": "bytes per entry"}
    print(json.dumps({**line, "extrapolated to 10 million": {name: round(each, 1) for name, each in ten.items()}}))


if __name__ == "__main__":
    main()
