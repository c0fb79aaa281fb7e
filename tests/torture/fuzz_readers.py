"""Random damage to sound files, through every reader for a bounded time; only errors with a code may come out.

    python tests/torture/fuzz_readers.py                  two minutes
    python tests/torture/fuzz_readers.py --seconds 3600   an hour

The last line is a JSON object with the number of failures and the bar.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from readers import damaged, readers, try_reader
from small_runs import make_runs


def main() -> None:
    """Fuzz all readers in turn, print a table and every kind of failure once, and the result as JSON."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=120, help="Time for all readers together. Default: 120.")
    options.add_argument("--seed", type=int, default=0, help="Seed of the damage. Default: 0.")
    chosen = options.parse_args()
    warnings.simplefilter("ignore")
    n_tried, failures = 0, {}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NEWKIND_CACHE"] = folder
        every = readers(make_runs(Path(folder)), Path(folder))
        print(f"{'reader':28}{'files':>10}{'failures':>10}")
        for reader in every:
            numbers = random.Random(f"{chosen.seed} {reader.name}")
            end, n, kinds = time.monotonic() + chosen.seconds / len(every), 0, {}
            while time.monotonic() < end:
                content = damaged(reader.content, numbers)
                n += 1
                try:
                    try_reader(reader, content, Path(folder))
                except Exception:  # noqa: BLE001 - a failure of the reader
                    kinds.setdefault(traceback.format_exc().splitlines()[-1][:100], traceback.format_exc())
            print(f"{reader.name:28}{n:>10,}{len(kinds):>10}", flush=True)
            n_tried += n
            failures |= {f"{reader.name}: {kind}": trace for kind, trace in kinds.items()}
    for trace in failures.values():
        print(trace)
    result = {
        "name": "fuzzed readers",
        "value": len(failures),
        "bar": 0,
        "ok": not failures,
        "unit": f"kinds of {n_tried:,} files",
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
