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

from figures import State
from readers import damaged, readers, try_reader
from small_runs import make_runs


def main() -> None:
    """Fuzz all readers in turn, print a table and every kind of failure once, and the result as JSON."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=float, default=120, help="time for all readers together")
    options.add_argument("--seed", type=int, default=0, help="seed of the damage")
    options.add_argument("--state", type=Path, help="file that keeps the figures")
    chosen = options.parse_args()
    warnings.simplefilter("ignore")
    state = State(chosen.state)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NEWKIND_CACHE"] = folder
        every = readers(make_runs(Path(folder)), Path(folder))
        for reader in every:
            figures = state.of("readers", reader.name, n=0, failures=[])
            numbers = random.Random(f"{chosen.seed} {reader.name} {figures['n']}")
            end, kinds = time.monotonic() + chosen.seconds / len(every), set(figures["failures"])
            while time.monotonic() < end:
                figures["n"] += 1
                try:
                    try_reader(reader, damaged(reader.content, numbers), Path(folder))
                except Exception:  # noqa: BLE001 - a failure of the reader
                    trace = traceback.format_exc()
                    if trace.splitlines()[-1][:200] not in kinds:
                        print(reader.name, trace, flush=True)
                    kinds.add(trace.splitlines()[-1][:200])
            figures["failures"] = sorted(kinds)
            state.save()
            print(f"{reader.name:28}{figures['n']:>10,}{len(kinds):>10}", flush=True)
    failures, n = state.failures("readers"), sum(figures["n"] for figures in state.content["readers"].values())
    result = {"name": "readers", "value": len(failures), "bar": 0, "ok": not failures, "unit": f"kinds of {n:,} files"}
    print(json.dumps(result))
    raise SystemExit(bool(failures))


if __name__ == "__main__":
    main()
