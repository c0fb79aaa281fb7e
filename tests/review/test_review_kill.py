"""The server is killed at any moment: nothing that it acknowledged is lost."""

import http.client
import random
import threading
from pathlib import Path

from server_process import Server, Servers

from newkind import atomic
from newkind.review.workbench import Workbench
from newkind.runs.assignments import read_categories
from newkind.runs.decision import Decision
from newkind.runs.decision_log import DecisionLog
from newkind.runs.decisions import Decisions
from newkind.runs.run import Run
from painted_run import write_run

KILLS = 30


def decide_until_killed(
    server: Server, number: int, seconds: float, last: int, acknowledged: list[tuple[int, str]]
) -> None:
    """Rename a category again and again, after event `last`; keep the number and the name of every acknowledged event."""
    timer = threading.Timer(seconds, server.kill)
    for i in range(10_000):
        name = f"name {number} {i}"
        try:
            decision = {"kind": "rename", "category": "new-01", "name": name}
            done = server.post("/api/decide", {"decision": decision, "based_on": last})
        except (OSError, http.client.HTTPException):
            timer.join()
            return
        last = done["number"]
        acknowledged.append((last, name))
        if i == 0:
            timer.start()


def test_nothing_acknowledged_is_lost(tmp_path: Path, servers: Servers) -> None:
    run = write_run(tmp_path / "run", tmp_path / "data")
    chance = random.Random(0)
    acknowledged: list[tuple[int, str]] = []
    for number in range(KILLS):
        server = servers.start(run.folder)
        server.open()
        decide_until_killed(server, number, chance.uniform(0.0, 0.15), DecisionLog(run.folder).last, acknowledged)
    events = DecisionLog(run.folder).events()
    names = {event.number: event.decision.name for event in events}
    assert len(acknowledged) >= KILLS
    assert all(names[n] == name for n, name in acknowledged)
    assert list(names) == list(range(1, len(names) + 1))
    # The server may have been killed between recording and answering, at most once per life.
    assert len(names) - len(acknowledged) <= KILLS
    current = {category.id: category.name for category in read_categories(run)}
    assert current["new-01"] == names[len(names)]


def test_a_server_that_ends_writes_the_answer(tmp_path: Path, servers: Servers) -> None:
    run = write_run(tmp_path / "run", tmp_path / "data")
    server = servers.start(run.folder)
    server.open()
    decision = {"kind": "rename", "category": "new-01", "name": "pear"}
    server.post("/api/decide", {"decision": decision, "based_on": 0})
    server.stop()
    for _ in range(1200):
        if ",pear," in run.assignments_file.read_text():
            return
        threading.Event().wait(0.1)
    raise AssertionError("the answer was not written")


def test_what_a_killed_server_did_not_write_is_written_by_the_next_one(run: Run) -> None:
    Decisions(run).decide(Decision("rename", category="new-01", name="pear"))
    partial = atomic.partial_of(run.assignments_file)
    partial.write_text("file,category")
    Workbench(run).close()
    assert ",pear," in run.assignments_file.read_text()
    assert not partial.exists()
