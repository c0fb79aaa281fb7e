"""The log of decisions of a run: an append-only table of events in SQLite."""

from __future__ import annotations

import getpass
import itertools
import json
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from newkind.atomic import write_bytes
from newkind.errors import RunError
from newkind.runs.conflicts import conflicting
from newkind.runs.decision import Decision, Event
from newkind.schema import InvalidJson, parse_json

__all__ = ["LOG_NAME", "DecisionLog", "default_author"]

LOG_NAME = "decisions.sqlite"
VERSION = 1
WAIT = 60.0
"""Seconds to wait for other processes that write the log."""
LONGEST_AUTHOR = 200
SCHEMA = f"""
CREATE TABLE IF NOT EXISTS events (
    number INTEGER PRIMARY KEY,
    time TEXT NOT NULL,
    author TEXT NOT NULL,
    based_on INTEGER NOT NULL,
    kind TEXT NOT NULL,
    decision TEXT NOT NULL
) STRICT;
CREATE TRIGGER IF NOT EXISTS no_update BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'append only'); END;
CREATE TRIGGER IF NOT EXISTS no_delete BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'append only'); END;
PRAGMA user_version = {VERSION};
"""
PARTS = {("table", "events"), ("trigger", "no_update"), ("trigger", "no_delete")}
"""All that a log contains. A view, or another trigger, could do anything while it is read."""
COLUMNS = ["number", "time", "author", "based_on", "kind", "decision"]
INSERT = "INSERT INTO events (number, time, author, based_on, kind, decision) VALUES (?, ?, ?, ?, ?, ?)"
Check = Callable[[list[Event], Decision], Decision]


def default_author() -> str:
    """Name of the user who runs this process."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # no entry for this user, as in some containers
        return "unknown"


class DecisionLog:
    """Events of a run, in decisions.sqlite. Several processes may append at once; an event that was returned is on disk.

    Parameters
    ----------
    folder : Path
        Run folder.
    """

    def __init__(self, folder: Path) -> None:
        self.file = folder / LOG_NAME
        self._events: list[Event] = []
        self._reading = threading.Lock()

    def append(
        self,
        decision: Decision,
        *,
        author: str | None = None,
        based_on: int | None = None,
        check: Check | None = None,
    ) -> Event:
        """Record a decision in one transaction.

        Parameters
        ----------
        decision : Decision
            The decision.
        author : str, optional
            Who decided. Default: the user who runs this process.
        based_on : int, optional
            Number of the last event that the author had seen. Default: the last one.
        check : callable, optional
            Called with all events and the decision, before anything is written and while no other process can write. It
            returns the decision to record, or raises.

        Returns
        -------
        Event

        Raises
        ------
        RunError
            With the code `stale` if later events than `based_on` conflict with the decision, or if the log was replaced since.
        """
        with self._opened(write=True) as connection, _transaction(connection):
            events = self._all(connection)
            last = events[-1].number if events else 0
            seen = last if based_on is None else based_on
            if seen > last:
                raise _replaced()
            if check is not None:
                decision = check(events, decision)
            self._refuse_if_stale(decision, events, seen)
            event = Event(last + 1, _now(), _plain(author or default_author()), seen, decision)
            connection.execute(INSERT, _row(event))
        return event

    def _refuse_if_stale(self, decision: Decision, events: list[Event], seen: int) -> None:
        since = [event for event in events if event.number > seen]
        found = conflicting(decision, since, {event.number: event for event in events}) if since else None
        if found is not None:
            raise RunError(
                f"The answer changed in the meantime: {found.author} recorded `{found.decision.kind}` as event "
                f"{found.number}.",
                fix="Look at the current answer and decide again.",
                code="stale",
                event=found.number,
                author=found.author,
            )

    def events(self, after: int = 0) -> list[Event]:
        """Events in order.

        Parameters
        ----------
        after : int, default=0
            Only events with a larger number.

        Returns
        -------
        list of Event
        """
        if not self.file.exists():
            return []
        with self._opened() as connection:
            return self._all(connection)[after:]

    def _all(self, connection: sqlite3.Connection) -> list[Event]:
        """All events; those that were read before are not read again, because the log only grows.

        When the run was overwritten, another log is in the place of the one that was read. It does not have the last event of that one.
        """
        with self._reading:
            if self._events and not _contains(connection, self._events[-1]):
                self._events = []
            self._events += _read(connection, len(self._events))
            return list(self._events)

    @property
    def last(self) -> int:
        """Number of the last event; 0 if there is none."""
        if not self.file.exists():
            return 0
        with self._opened() as connection:
            if not _has_events(connection):
                return 0
            return int(connection.execute("SELECT coalesce(max(number), 0) FROM events").fetchone()[0])

    def export_jsonl(self) -> str:
        """All events as JSON lines."""
        return "".join(json.dumps(event.to_json()) + "\n" for event in self.events())

    def fill(self, events: Sequence[Event]) -> None:
        """Write a new log with these events, as when a run is continued; a log that is there is replaced."""
        try:
            with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
                connection.executescript(f"BEGIN IMMEDIATE; {SCHEMA} COMMIT;")
                with _transaction(connection):
                    connection.executemany(INSERT, map(_row, events))
                content = connection.serialize()
            write_bytes(self.file, content)
        except sqlite3.DatabaseError as error:
            raise RunError(f"{self.file} cannot be written ({error}).", code="cannot-write", file=self.file) from None
        for suffix in ("-wal", "-shm"):
            self.file.with_name(self.file.name + suffix).unlink(missing_ok=True)
        self._events = []

    def retire(self) -> Path | None:
        """Move the log of a run that is overwritten to decisions-1.sqlite or the next free name; None if there is none."""
        if not self.last:
            self.file.unlink(missing_ok=True)
            return None
        free = (self.file.with_name(f"{self.file.stem}-{n}{self.file.suffix}") for n in itertools.count(1))
        target = next(path for path in free if not path.exists())
        with self._opened(write=True) as connection:
            connection.execute("VACUUM INTO ?", (str(target),))
        for suffix in ("", "-wal", "-shm"):
            self.file.with_name(self.file.name + suffix).unlink(missing_ok=True)
        return target

    @contextmanager
    def _opened(self, *, write: bool = False) -> Iterator[sqlite3.Connection]:
        """A connection of its own for each operation, so that threads and forked processes share nothing."""
        try:
            with closing(self._connect(write=write)) as connection:
                yield connection
        except (sqlite3.Error, UnicodeDecodeError) as error:  # Unicode: what SQLite says about a damaged schema
            busy = isinstance(error, sqlite3.OperationalError) and "locked" in str(error)
            code = "locked" if busy else "cannot-write" if write else "unreadable"
            what = "written" if write else "read"
            raise RunError(f"{self.file} cannot be {what} ({error}).", code=code, file=self.file) from None

    def _connect(self, *, write: bool) -> sqlite3.Connection:
        if not write:
            try:
                return self._prepared(sqlite3.connect(self.file, timeout=WAIT, isolation_level=None))
            except sqlite3.OperationalError as error:  # a folder that cannot be written, such as a mounted archive
                if "locked" in str(error) or self._has_more():
                    raise
                place = f"{self.file.resolve().as_uri()}?mode=ro&immutable=1"
                return self._prepared(sqlite3.connect(place, uri=True, timeout=WAIT, isolation_level=None))
        connection = self._prepared(sqlite3.connect(self.file, timeout=WAIT, isolation_level=None))
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'no_delete'").fetchone():
                connection.executescript(f"BEGIN IMMEDIATE; {SCHEMA} COMMIT;")
        except BaseException:
            connection.close()
            raise
        return connection

    def _has_more(self) -> bool:
        """Whether events are only in the write-ahead log, which cannot be read in a folder that cannot be written."""
        try:
            return self.file.with_name(f"{self.file.name}-wal").stat().st_size > 0
        except FileNotFoundError:
            return False

    def _prepared(self, connection: sqlite3.Connection) -> sqlite3.Connection:
        """The connection, if the log has a format that this version can read."""
        try:
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            parts = {(kind, name) for kind, name in connection.execute("SELECT type, name FROM sqlite_master")}
            columns = [row[1] for row in connection.execute("PRAGMA table_xinfo(events)")]
        except BaseException:
            connection.close()
            raise
        if version > VERSION:
            connection.close()
            raise RunError(
                f"{self.file} has format {version}. This version reads format {VERSION}.",
                fix="Use a newer version of Newkind.",
                code="unknown-format",
                file=self.file,
            )
        if parts not in (set(), PARTS) or (parts and columns != COLUMNS) or self.file.is_symlink():
            connection.close()
            raise RunError(
                f"{self.file} is not a log of decisions. It was not changed.",
                fix="Restore the file from a copy, or remove it to discard all decisions.",
                code="unreadable",
                file=self.file,
            )
        return connection


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.rollback()
        raise
    connection.commit()


def _row(event: Event) -> tuple[int, str, str, int, str, str]:
    """Values of an event in the order of `INSERT`."""
    decision = event.decision
    content = json.dumps(decision.to_json())
    return (event.number, event.time, event.author, event.based_on, decision.kind, content)


def _has_events(connection: sqlite3.Connection) -> bool:
    """Whether the table is there; another process may be creating it."""
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'events'").fetchone() is not None


def _contains(connection: sqlite3.Connection, event: Event) -> bool:
    """Whether the log has an event, as it was read before."""
    if not _has_events(connection):
        return False
    row = connection.execute(
        "SELECT number, time, author, based_on, kind, decision FROM events WHERE number = ?", (event.number,)
    ).fetchone()
    return bool(row == _row(event))


def _read(connection: sqlite3.Connection, after: int) -> Iterator[Event]:
    if not _has_events(connection):
        return
    rows = connection.execute(
        "SELECT number, time, author, based_on, decision FROM events WHERE number > ? ORDER BY number", (after,)
    )
    for expected, (number, time, author, based_on, decision) in enumerate(rows, start=after + 1):
        types = [type(value) for value in (number, time, author, based_on, decision)]
        if types != [int, str, str, int, str] or number != expected:
            raise RunError(f"Event {after + 1} or a later one of the log of decisions is damaged.", code="unreadable")
        yield Event(number, time, author, based_on, Decision.from_json(_parsed(decision)))


def _parsed(decision: str) -> Any:
    """Decision of a row, as JSON."""
    try:
        return parse_json(decision, dict)
    except InvalidJson as error:
        raise RunError(f"The log of decisions is damaged ({error}).", code="unreadable") from None


def _replaced() -> RunError:
    """Error for a decision about a run that was overwritten since its author looked."""
    return RunError(
        "The run was overwritten in the meantime, and its decisions were put aside.",
        fix="Look at the current answer and decide again.",
        code="stale",
    )


def _plain(author: str) -> str:
    """Author as text that can be stored."""
    return author.encode("utf-8", "replace").decode()[:LONGEST_AUTHOR]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
