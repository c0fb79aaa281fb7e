"""Kill commands at random moments and let their writes fail; afterwards the same command has to end in the same bytes.

    python tests/torture/torture.py                           500 kills, and an error at every call that changes a file
    python tests/torture/torture.py --seconds 45              a share of it, by time
    python tests/torture/torture.py --trials 2                a share of it, by number
    python tests/torture/torture.py --only kills --n 100      one part
    python tests/torture/torture.py --state build/torture.json    continue where it was interrupted

A kill is SIGKILL after a random time, or in the middle of a random call that changes a file. An error is "no space left"
from a call on, or an input/output error of one call. Calls from the same lines of the package, on files of the same name
apart from numbers, are one site: one call of every site fails before any other does. Needs Linux and a C compiler. The last line is one JSON object.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "review")]


def with_preloaded_library() -> None:
    """Start this program again with the library that injects faults, unless it is loaded already."""
    if "NEWKIND_TORTURE" in os.environ:
        return
    folder = tempfile.mkdtemp(prefix="newkind-torture-")
    library = Path(folder) / "failing_writes.so"
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise SystemExit("There is no C compiler.")
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(HERE / "failing_writes.c"), "-ldl"]
    subprocess.run(command, check=True, timeout=120)
    one_thread = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
    more = {"LD_PRELOAD": str(library), "NEWKIND_TORTURE": folder, "ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16"}
    os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | one_thread | more)


with_preloaded_library()

from figures import State  # noqa: E402
from scenarios import SCENARIOS, Scenario  # noqa: E402
from trials import ERRORS, Torture  # noqa: E402


@contextmanager
def folders() -> Iterator[tuple[Path, Path]]:
    """A folder to work in, and one on another disk, if there is one."""
    home = Path(os.environ["NEWKIND_TORTURE"])
    shared = Path("/dev/shm")
    other = Path(tempfile.mkdtemp(prefix="newkind-torture-", dir=shared if shared.is_dir() else None))
    try:
        yield home, other
    finally:
        shutil.rmtree(home, ignore_errors=True)
        shutil.rmtree(other, ignore_errors=True)


def import_everything() -> None:
    """Import what commands import, so that processes that are forked from this one start at once."""
    import newkind.api
    import newkind.cli
    import newkind.experiments.paper.run_study
    import newkind.export.sorting
    import newkind.report.write  # noqa: F401


def kills(torture: Torture, state: State, seed: int, n: int) -> Iterator[None]:
    """Kill the command until there were so many kills; each trial has its own random numbers."""
    name = torture.scenario.name
    figures = state.of("kills", name, trials=0, kills=0, failures=[])
    while figures["kills"] < n:
        figures["kills"] += torture.kill(random.Random(f"{seed} {name} {figures['trials']}"))
        figures["trials"] += 1
        figures["failures"] += torture.failures
        torture.failures.clear()
        yield


def errors(torture: Torture, state: State, seed: int, per_site: bool) -> Iterator[None]:
    """Let every call fail once with each kind of error, or one call of every site; the sites come first."""
    name, n_sites = torture.scenario.name, len(set(torture.sites))
    start = {"no space": 0, "I/O error": 0, "n_calls": len(torture.sites), "n_sites": n_sites, "failures": []}
    figures = state.of("errors", name, **start)
    if (figures["n_calls"], figures.get("n_sites")) != (len(torture.sites), n_sites):
        figures |= start  # another program than the one that was interrupted
    numbers = torture.calls(random.Random(f"{seed} {name}"))
    failing = [(kind, number) for number in (numbers[:n_sites] if per_site else numbers) for kind in ERRORS]
    for kind, number in failing[figures["no space"] + figures["I/O error"] :]:
        torture.fail_writing(kind, number)
        figures[kind] += 1
        figures["failures"] += torture.failures
        torture.failures.clear()
        yield


def is_complete(state: State, scenario: Scenario, n_kills: int, parts: list[str], per_site: bool) -> bool:
    """Whether nothing is left to do, so that the scenario does not have to be prepared."""
    killed, failed = (state.content.get(part, {}).get(scenario.name, {}) for part in ("kills", "errors"))
    n_errors = failed.get("no space", 0) + failed.get("I/O error", 0)
    enough = {
        "kills": killed.get("kills", -1) >= n_kills,
        "errors": n_errors >= 2 * failed.get("n_sites" if per_site else "n_calls", 1),
    }
    return all(enough[part] for part in parts)


def alternating(*parts: Iterator[None]) -> Iterator[None]:
    """One trial of each part in turn, until all are at their end."""
    remaining = list(parts)
    while remaining:
        for part in list(remaining):
            try:
                yield next(part)
            except StopIteration:
                remaining.remove(part)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["kills", "errors"], help="one of the two parts")
    parser.add_argument("--n", type=int, default=500, help="number of kills over all commands")
    parser.add_argument("--per-site", action="store_true", help="let only one call of every place in the code fail")
    parser.add_argument("--seconds", type=float, help="stop after so many seconds, with a share of the trials")
    parser.add_argument("--trials", type=int, help="number of trials per part and command, whatever time they take")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random moments")
    parser.add_argument("--commands", nargs="+", default=[""], help="commands whose name contains one of these texts")
    parser.add_argument("--state", type=Path, help="file that keeps the figures, and from which trials continue")
    chosen = parser.parse_args()
    import_everything()
    state, parts = State(chosen.state), [chosen.only] if chosen.only else ["kills", "errors"]
    with folders() as (home, other):
        every = [scenario for scenario in SCENARIOS if any(text in scenario.name for text in chosen.commands)]
        if os.stat(home).st_dev == os.stat(other).st_dev:
            every = [scenario for scenario in every if not scenario.needs_other_disk]
        n_kills = -(-chosen.n // len(every))
        deadline = time.monotonic() + (chosen.seconds or float("inf"))
        for i, scenario in enumerate(every):
            if is_complete(state, scenario, n_kills, parts, chosen.per_site):
                continue
            share = time.monotonic() + (deadline - time.monotonic()) / (len(every) - i)
            torture = Torture(scenario, home, other)
            trials = {
                "kills": kills(torture, state, chosen.seed, n_kills),
                "errors": errors(torture, state, chosen.seed, chosen.per_site),
            }
            for number, _ in enumerate(alternating(*(trials[part] for part in parts)), start=1):
                state.save()
                is_share = time.monotonic() > share and number >= len(parts)  # each part has at least one trial
                if is_share or (chosen.trials and number >= len(parts) * chosen.trials):
                    break
            done = {part: state.content.get(part, {}).get(scenario.name) for part in parts}
            print(f"{scenario.name} ({torture.seconds:.2f} s): {done}", flush=True)
    failures = [text for part in parts for text in state.failures(part)]
    n_kills = sum(figures["kills"] for figures in state.content.get("kills", {}).values())
    n_errors = sum(figures[kind] for figures in state.content.get("errors", {}).values() for kind in ERRORS)
    result = {"name": "torture", "value": len(failures), "bar": 0, "ok": not failures, "unit": "failures"}
    print(json.dumps(result | {"kills": n_kills, "errors": n_errors}))
    raise SystemExit(bool(failures))


if __name__ == "__main__":
    main()
