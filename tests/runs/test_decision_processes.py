"""Several processes, and processes that are killed: no acknowledged decision is lost."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

from random_decisions import KINDS
from small_answer import small_run

from newkind.runs.decision import Decision
from newkind.runs.decisions import Decisions
from newkind.runs.run import Run

WRITER = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parent)!r})
import numpy as np
from newkind.errors import RunError
from newkind.runs.decisions import Decisions
from newkind.runs.run import Run
from random_decisions import random_decision

folder, seed, n = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
decisions, rng, done = Decisions(Run(folder)), np.random.default_rng(seed), 0
while done < n:
    seen = decisions.answer
    try:
        event = decisions.decide(
            random_decision(str(rng.choice({KINDS!r})), seen, rng), author=f"writer {{seed}}", based_on=seen.last
        )
    except RunError as error:
        if error.code in ("locked", "cannot-write", "unreadable"):
            raise
        continue
    done += 1
    print(event.number, event.decision.kind, flush=True)
"""


def _start(folder: Path, seed: int, n: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(folder), str(seed), str(n)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ))


def _acknowledged(text: str) -> dict[int, str]:
    """Number and kind of the events in the complete lines of a writer's output."""
    lines = [line.split() for line in text.splitlines(keepends=True) if line.endswith("\n")]
    return {int(number): kind for number, kind in lines}


def test_writers_lose_nothing_of_each_other(tmp_path: Path) -> None:
    run = small_run(tmp_path / "run")
    writers = [_start(run.folder, seed, 8) for seed in range(3)]
    outputs = [writer.communicate(timeout=300) for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0, 0], outputs
    seen = [_acknowledged(out) for out, _ in outputs]
    events = Decisions(run).log.events()
    assert [event.number for event in events] == list(range(1, 25))
    assert {event.number: event.decision.kind for event in events} == seen[0] | seen[1] | seen[2]
    for seed, own in enumerate(seen):
        assert {event.number for event in events if event.author == f"writer {seed}"} == set(own)
    assert Decisions(run).answer.last == 24


def test_a_killed_writer_loses_nothing_acknowledged(tmp_path: Path) -> None:
    run = small_run(tmp_path / "run")
    acknowledged: dict[int, str] = {}
    chance = random.Random(0)
    for seed in range(4):
        writer = _start(run.folder, seed, 10_000)
        assert writer.stdout is not None
        first = writer.stdout.readline()  # it is writing now
        time.sleep(chance.uniform(0, 0.3))
        writer.send_signal(signal.SIGKILL)
        rest, problems = writer.communicate(timeout=120)
        assert first, problems
        acknowledged |= _acknowledged(first + rest)
        events = {event.number: event.decision.kind for event in Decisions(Run(run.folder)).log.events()}
        assert events.items() >= acknowledged.items()
    decisions = Decisions(run)
    last = decisions.log.last
    assert decisions.decide(Decision("note", text="still there")).number == last + 1
    connection = sqlite3.connect(decisions.log.file)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
