"""Kill commands at random moments and let their writes fail; afterwards the same command has to end in the same bytes.

    python tests/torture/torture.py                 # 500 kills, and an error at every call that changes a file
    python tests/torture/torture.py --seconds 45    # a share of it
    python tests/torture/torture.py --write FILE    # also write the figures as Markdown

A kill is SIGKILL after a random time, or in the middle of a random call that changes a file. An error is "no space left"
from a call on, or an input/output error of one call. Needs Linux and a C compiler. The last line is one JSON object.
"""

import argparse
import errno
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "review")]
ERRORS = {"no space": (2, errno.ENOSPC), "I/O error": (1, errno.EIO)}


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

from commands import KILL, Ended, Fault, run_command  # noqa: E402
from scenarios import SCENARIOS, Content, Scenario, leftovers  # noqa: E402
from sessions import ACKNOWLEDGED  # noqa: E402


@dataclass
class Figures:
    """What was done to one scenario. `failures` says what went wrong, and where the log and the files are."""

    kills: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    n_calls: int = 0
    failures: list[str] = field(default_factory=list)


class Torture:
    """One scenario with its folders and its expected end."""

    def __init__(self, scenario: Scenario, home: Path, other: Path) -> None:
        self.scenario = scenario
        self.start, self.work, self.other, self.log = home / "start", home / "work", other, home / "log.txt"
        self.figures = Figures()
        self.arguments = [word.replace("OTHER", str(other)) for word in scenario.arguments]
        for folder in (self.start, self.work):
            shutil.rmtree(folder, ignore_errors=True)
        self.work.mkdir()
        scenario.prepare(self.work)
        for command in scenario.before:
            done = run_command(list(command), (self.work, self.other), self.log)
            assert done.code == 0, done.output
        shutil.copytree(self.work, self.start, symlinks=True)
        self.fresh()
        self.treasure = scenario.kept(self.work, self.other)
        done = self.run(Fault(0))
        assert done.code == 0, done.output
        self.expected: Content = scenario.content(self.work, self.other)
        self.figures.n_calls, self.seconds = done.calls, done.seconds
        assert self.expected, scenario.name
        assert not leftovers(self.work, self.other)

    def fresh(self) -> None:
        """Everything as it was before the command."""
        for folder in (self.work, self.other):
            shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.start, self.work, symlinks=True)
        self.other.mkdir()
        (self.work.parent / ACKNOWLEDGED.name).unlink(missing_ok=True)

    def run(self, fault: Fault | None = None, kill_after: float | None = None) -> Ended:
        """Run the command on what is there."""
        return run_command(self.arguments, (self.work, self.other), self.log, fault=fault, kill_after=kill_after)

    def kill(self, rng: random.Random) -> None:
        """Kill the command one to three times, each time on what the last one left, and let it finish."""
        self.fresh()
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            if rng.random() < 0.5:
                moment = rng.uniform(0, self.seconds)
                done = self.run(kill_after=moment)
                what = f"killed after {moment:.2f} s"
            else:
                number = rng.randint(1, self.figures.n_calls)
                done = self.run(Fault(number, KILL))
                what = f"killed in call {number}"
            if done.code == -9:
                self.figures.kills += 1
            elif not done.plainly:
                self.fail(what, done)
            self.check_kept(what, done)
        self.finish(what)

    def fail_writing(self, kind: str, number: int) -> None:
        """Let a call fail; the command has to say so, and to finish when it is repeated."""
        self.fresh()
        action, code = ERRORS[kind]
        done = self.run(Fault(number, action, code))
        what = f"{kind} at call {number}"
        self.figures.errors[kind] += 1
        if not done.plainly:
            self.fail(what, done)
        self.check_kept(what, done)
        self.finish(what)

    def check_kept(self, what: str, done: Ended) -> None:
        """Nothing may be lost at any moment."""
        try:
            kept = self.scenario.kept(self.work, self.other)
        except Exception as error:  # noqa: BLE001 - whatever it is, something cannot be read
            self.fail(f"{what}: {type(error).__name__} {error}", done)
            return
        if kept != self.treasure:
            self.fail(f"{what}: {len(self.treasure) - len(kept)} files were lost", done)

    def finish(self, what: str) -> None:
        """The same command ends in the same bytes, or says that the result exists."""
        done = self.run()
        found = self.scenario.content(self.work, self.other)
        is_complete = done.code == 0 or (done.code == 2 and "[exists]" in done.output)
        if not is_complete or found != self.expected:
            names = {name for name in found.keys() | self.expected.keys() if found.get(name) != self.expected.get(name)}
            self.fail(f"{what}: another end, different: {sorted(names)[:4]}", done)
        if remaining := leftovers(self.work, self.other):
            self.fail(f"{what}: left behind: {remaining[:3]}", done)

    def fail(self, what: str, done: Ended) -> None:
        """Write down a failure and print what the command said."""
        self.figures.failures.append(what)
        print(f"FAILED {self.scenario.name}: {what} (exit code {done.code})\n{done.output[-3000:]}", flush=True)


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


def tasks(torture: Torture, rng: random.Random, n_kills: int, step: int) -> Iterator[None]:
    """Kill and fail in turn, until there were enough kills and every call, or every so many, has failed."""
    failing = [(kind, number) for kind in ERRORS for number in range(1, torture.figures.n_calls + 1, step)]
    rng.shuffle(failing)
    while torture.figures.kills < n_kills or failing:
        if torture.figures.kills < n_kills:
            torture.kill(rng)
            yield
        if failing:
            torture.fail_writing(*failing.pop())
            yield


def markdown(all_figures: dict[str, Figures], seed: int, minutes: float) -> str:
    """The figures as a table."""
    kills = sum(figures.kills for figures in all_figures.values())
    n_errors = sum(sum(figures.errors.values()) for figures in all_figures.values())
    failures = sum(len(figures.failures) for figures in all_figures.values())
    rows = [
        f"| {name} | {figures.n_calls} | {figures.kills} | {figures.errors['no space']} | {figures.errors['I/O error']} "
        f"| {len(figures.failures)} |"
        for name, figures in all_figures.items()
    ]
    return "\n".join(
        [
            "# Torture",
            "",
            f"`make torture` (seed {seed}, {minutes:.0f} minutes): {kills} kills and {n_errors} failed calls, "
            f"{failures} failures.",
            "",
            "Each command is killed with SIGKILL at random moments and in the middle of random calls that change a file, up "
            "to three times in a row. In other trials, a call fails: with *no space* from that call on, or once with an "
            "*I/O error*. The command has to end without a traceback, nothing may be lost at any moment, and the same "
            "command has to end in the same bytes as without interruption, with no file left behind.",
            "",
            "| command | calls that change a file | kills | no space | I/O error | failures |",
            "|---|--:|--:|--:|--:|--:|",
            *rows,
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=500, help="number of kills over all commands")
    parser.add_argument("--every", type=int, default=1, help="let only every so many calls fail")
    parser.add_argument("--seconds", type=float, help="stop after so many seconds, with a share of the trials")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random moments")
    parser.add_argument("--only", help="commands whose name contains this text")
    parser.add_argument("--write", type=Path, help="Markdown file for the figures")
    arguments = parser.parse_args()
    import_everything()
    started = time.monotonic()
    rng = random.Random(arguments.seed)
    all_figures: dict[str, Figures] = {}
    with folders() as (home, other):
        chosen = [s for s in SCENARIOS if not arguments.only or arguments.only in s.name]
        if os.stat(home).st_dev == os.stat(other).st_dev:
            chosen = [s for s in chosen if not s.needs_other_disk]
        deadline = started + (arguments.seconds or float("inf"))
        for i, scenario in enumerate(chosen):
            share = time.monotonic() + (deadline - time.monotonic()) / (len(chosen) - i)
            torture = Torture(scenario, home, other)
            all_figures[scenario.name] = torture.figures
            n_kills = -(-arguments.kills // len(chosen))
            for _ in tasks(torture, rng, n_kills, arguments.every):
                if time.monotonic() > share:
                    break
            print(f"{scenario.name}: {torture.figures}", flush=True)
    failures = sum(len(figures.failures) for figures in all_figures.values())
    kills = sum(figures.kills for figures in all_figures.values())
    if arguments.write:
        arguments.write.write_text(markdown(all_figures, arguments.seed, (time.monotonic() - started) / 60))
    result = {"name": "torture", "value": failures, "bar": 0, "ok": not failures, "unit": "failures", "kills": kills}
    print(json.dumps(result | {"errors": sum(sum(f.errors.values()) for f in all_figures.values())}))
    raise SystemExit(bool(failures))


if __name__ == "__main__":
    main()
