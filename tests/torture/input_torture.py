"""Generated bad inputs through the whole command line: none of them may end with a traceback.

    python tests/torture/input_torture.py                 1,000 inputs
    python tests/torture/input_torture.py --inputs 70     fewer

Every kind of input gets the same share. The last line is a JSON object with the number of tracebacks and the bar.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path

os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
os.environ["COLUMNS"] = "200"
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bad_inputs import KINDS, Attempt, attempt
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from small_runs import SmallRuns, make_runs


def torture(kind: str, n_inputs: int, runs: SmallRuns, folder: Path, *, first: int = 0) -> list[Attempt]:
    """Attempts of a kind, exactly `n_inputs` of them."""
    found: list[Attempt] = []
    while len(found) < n_inputs:
        number = first + len(found)

        @seed(number)
        @settings(
            max_examples=n_inputs - len(found),
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(st.data())
        def generate(data: st.DataObject) -> None:
            found.append(attempt(kind, data, runs, folder))

        generate()
    return found[:n_inputs]


def main() -> None:
    """Run, print a table and every failure, and the result as JSON."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--inputs", type=int, default=1000, help="Number of inputs. Default: 1000.")
    options.add_argument("--seed", type=int, default=0, help="Seed of the generator. Default: 0.")
    options.add_argument("--only", choices=list(KINDS), help="Only inputs of this kind.")
    chosen = options.parse_args()
    kinds = [chosen.only] if chosen.only else list(KINDS)
    n_failed, n_inputs = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NEWKIND_CACHE"] = str(Path(folder) / "cache")
        os.chdir(folder)
        runs = make_runs(Path(folder))
        print(f"{'kind':24}{'inputs':>8}{'exit 0':>8}{'exit 2':>8}{'failed':>8}{'slowest':>10}")
        for i, kind in enumerate(kinds):
            share = chosen.inputs // len(kinds) + (i < chosen.inputs % len(kinds))
            found = torture(kind, share, runs, Path(folder) / "work", first=chosen.seed)
            codes = Counter(each.done.code for each in found)
            failed = [each for each in found if not each.done.ended_well]
            slowest = max(each.seconds for each in found)
            print(f"{kind:24}{len(found):>8}{codes[0]:>8}{codes[2]:>8}{len(failed):>8}{slowest:>8.1f} s", flush=True)
            for each in failed:
                print("FAILED:", each.arguments)
                print(each.done.traceback or f"exit code {each.done.code}, {each.done.errors!r}")
            n_failed, n_inputs = n_failed + len(failed), n_inputs + len(found)
    print(
        json.dumps({"name": "bad inputs", "value": n_failed, "bar": 0, "ok": not n_failed, "unit": f"of {n_inputs:,}"})
    )


if __name__ == "__main__":
    main()
