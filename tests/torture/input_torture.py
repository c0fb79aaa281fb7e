"""Generated bad inputs through the whole command line: none of them may end with a traceback.

    python tests/torture/input_torture.py                 1,000 inputs
    python tests/torture/input_torture.py --n 70          fewer
    python tests/torture/input_torture.py --state build/torture.json    continue where it was interrupted

Every kind of input gets the same share. The last line is a JSON object with the number of tracebacks and the bar.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
os.environ["COLUMNS"] = "200"
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bad_inputs import KINDS, Attempt, attempt
from figures import State
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from small_runs import SmallRuns, make_runs

BATCH = 20
"""Inputs between two writes of the figures."""


def torture(kind: str, n_inputs: int, runs: SmallRuns, folder: Path, *, first: int = 0) -> list[Attempt]:
    """About so many attempts of a kind; `first` is the seed."""
    found: list[Attempt] = []

    @seed(first)
    @settings(
        max_examples=n_inputs,
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
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--n", type=int, default=1000, help="number of inputs")
    options.add_argument("--seed", type=int, default=0, help="seed of the generator")
    options.add_argument("--kind", choices=list(KINDS), help="only inputs of this kind")
    options.add_argument("--state", type=Path, help="file that keeps the figures, and from which inputs continue")
    chosen = options.parse_args()
    kinds, state = [chosen.kind] if chosen.kind else list(KINDS), State(chosen.state and chosen.state.absolute())
    share = -(-chosen.n // len(kinds))
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NEWKIND_CACHE"] = str(Path(folder) / "cache")
        os.chdir(folder)
        runs = make_runs(Path(folder))
        for kind in kinds:
            figures = state.of("inputs", kind, n=0, **{"exit 0": 0, "exit 2": 0}, slowest=0.0, failures=[])
            while figures["n"] < share:
                number = 1000 * chosen.seed + figures["n"]
                n_next = min(BATCH, share - figures["n"])
                for each in torture(kind, n_next, runs, Path(folder) / "work", first=number):
                    figures["n"] += 1
                    figures["exit 0"] += each.done.code == 0
                    figures["exit 2"] += each.done.code == 2
                    figures["slowest"] = max(figures["slowest"], each.seconds)
                    if not each.done.ended_well:
                        figures["failures"].append(
                            f"{each.arguments}: {(each.done.traceback or each.done.errors)[-500:]}"
                        )
                        print("FAILED:", each.arguments, each.done.traceback or each.done.errors, flush=True)
                state.save()
            print(f"{kind}: {figures}", flush=True)
    failures, n = state.failures("inputs"), sum(figures["n"] for figures in state.content["inputs"].values())
    result = {"name": "bad inputs", "value": len(failures), "bar": 0, "ok": not failures, "unit": f"of {n:,}"}
    print(json.dumps(result))
    raise SystemExit(bool(failures))


if __name__ == "__main__":
    main()
