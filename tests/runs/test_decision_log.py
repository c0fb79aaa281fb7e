"""The log of decisions: what it refuses, and that nothing in it changes."""

import json
import sqlite3
import threading
from pathlib import Path

import pytest

from error_codes import raises
from newkind.errors import RunError
from newkind.runs.decision import Decision, event_from_json
from newkind.runs.decision_log import DecisionLog

A, B = "new-01", "new-02"


@pytest.fixture
def log(tmp_path: Path) -> DecisionLog:
    return DecisionLog(tmp_path)


def test_events_are_numbered_and_exported(log: DecisionLog, tmp_path: Path) -> None:
    assert (log.last, log.events(), log.export_jsonl()) == (0, [], "")
    assert not log.file.exists()
    first = log.append(Decision("rename", category=A, name="bee"), author="ada")
    second = log.append(Decision("junk", files=("a\udc80.jpg",)))
    assert [first.number, second.number, second.based_on] == [1, 2, 1]
    assert DecisionLog(tmp_path).events() == [first, second]
    assert log.events(after=1) == [second]
    lines = log.export_jsonl().splitlines()
    assert [event_from_json(line) for line in lines] == [first, second]
    assert json.loads(lines[0])["decision"] == {"kind": "rename", "category": A, "name": "bee"}


def test_events_cannot_be_changed_or_removed(log: DecisionLog) -> None:
    log.append(Decision("rename", category=A, name="bee"))
    connection = sqlite3.connect(log.file)
    for statement in ("UPDATE events SET author = 'eve'", "DELETE FROM events"):
        with pytest.raises(sqlite3.IntegrityError):
            connection.execute(statement)
    connection.close()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (Decision("rename", category=A, name="bee"), Decision("rename", category=A, name="wasp")),
        (Decision("merge", categories=(A,), into=B), Decision("rename", category=A, name="wasp")),
        (Decision("merge", categories=(A,), into=B), Decision("move", files=("1",), into=A)),
        (Decision("merge", categories=(A,), into=B), Decision("approve", category=B)),
        (Decision("move", files=("1", "2"), into=A), Decision("junk", files=("2", "3"))),
        (Decision("split", category=A, groups=(("1",),), ids=("new-03",)), Decision("move", files=("1",), into=B)),
        (Decision("approve", category=A), Decision("refit", refit="one")),
        (Decision("refit", refit="one"), Decision("approve", category=A)),
    ],
)
def test_conflicts_with_events_that_were_not_seen_are_stale(
    log: DecisionLog, first: Decision, second: Decision
) -> None:
    log.append(first)
    with raises(RunError, "stale"):
        log.append(second, based_on=0)
    assert log.last == 1
    log.append(second, based_on=1)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (Decision("move", files=("1",), into=A), Decision("move", files=("2",), into=A)),
        (Decision("rename", category=A, name="bee"), Decision("approve", category=A)),
        (Decision("note", text="look"), Decision("refit", refit="one")),
        (Decision("merge", categories=(A,), into=B), Decision("note", text="look", category=A)),
    ],
)
def test_other_decisions_are_not(log: DecisionLog, first: Decision, second: Decision) -> None:
    log.append(first)
    assert log.append(second, based_on=0).based_on == 0


def test_an_undo_changes_what_the_undone_event_changed(log: DecisionLog) -> None:
    log.append(Decision("rename", category=A, name="bee"))
    log.append(Decision("undo", event=1))
    with raises(RunError, "stale"):
        log.append(Decision("rename", category=A, name="wasp"), based_on=1)
    log.append(Decision("rename", category=B, name="wasp"), based_on=1)


def test_other_files_and_formats_are_refused(log: DecisionLog) -> None:
    log.file.write_text("not a database, just some text that is long enough to look like one\n" * 50)
    with raises(RunError, "unreadable"):
        log.events()
    with raises(RunError, "cannot-write"):
        log.append(Decision("junk", files=("1",)))
    log.file.unlink()
    connection = sqlite3.connect(log.file)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with raises(RunError, "unknown-format"):
        log.events()


def test_a_log_that_is_being_created_is_empty(log: DecisionLog) -> None:
    log.file.touch()
    assert (log.last, log.events()) == (0, [])
    assert log.append(Decision("junk", files=("1",))).number == 1


def test_reading_while_the_first_event_is_recorded(tmp_path: Path) -> None:
    for i in range(20):
        folder = tmp_path / str(i)
        folder.mkdir()
        failed: list[RunError] = []
        done = threading.Event()

        def read(folder: Path = folder, failed: list[RunError] = failed, done: threading.Event = done) -> None:
            log = DecisionLog(folder)
            while not done.is_set():
                try:
                    assert log.last == len(log.events()) or log.last == 1
                except RunError as error:
                    failed.append(error)

        readers = [threading.Thread(target=read) for _ in range(3)]
        for reader in readers:
            reader.start()
        DecisionLog(folder).append(Decision("junk", files=("1",)))
        done.set()
        for reader in readers:
            reader.join()
        assert failed == []


def test_a_damaged_schema_that_is_not_text(log: DecisionLog) -> None:
    log.append(Decision("rename", category=A, name="bee"))
    with sqlite3.connect(log.file) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    content = log.file.read_bytes()
    at = content.index(b"CREATE TABLE events")
    log.file.write_bytes(content[:at] + b"CREATE TABL\xa9 events" + content[at + 19 :])
    with raises(RunError, "unreadable"):
        DecisionLog(log.file.parent).events()


def test_another_log_in_its_place_is_read_from_the_start(log: DecisionLog, tmp_path: Path) -> None:
    """As when a run is overwritten that is open elsewhere."""
    for name in ("bee", "wasp"):
        log.append(Decision("rename", category=A, name=name))
    assert DecisionLog(tmp_path).retire() == tmp_path / "decisions-1.sqlite"
    with raises(RunError, "stale"):
        log.append(Decision("junk", files=("1",)), based_on=2)
    assert (log.last, DecisionLog(tmp_path).events()) == (0, [])
    first = log.append(Decision("junk", files=("1",)), based_on=0)
    assert first.number == 1
    assert log.events() == DecisionLog(tmp_path).events() == [first]


def test_a_longer_log_in_its_place_is_noticed_too(log: DecisionLog, tmp_path: Path) -> None:
    log.append(Decision("rename", category=A, name="bee"))
    assert len(log.events()) == 1
    other = DecisionLog(tmp_path)
    other.retire()
    others = [other.append(Decision("junk", files=(f"{i}",))) for i in range(3)]
    assert log.events() == others
    assert log.append(Decision("junk", files=("4",))).number == 4
