"""Figures of the torture suite, kept in a file so that its parts can be interrupted and continued, and their Markdown.

python tests/torture/figures.py build/torture.json benchmarks/results/torture.md
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["State", "commit"]

HERE = Path(__file__).resolve().parent


class State:
    """Figures by part and name; without a file, only in memory."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.content: dict[str, dict[str, Any]] = {}
        if path is not None and path.exists():
            self.content = json.loads(path.read_text())

    def of(self, part: str, name: str, **start: Any) -> dict[str, Any]:
        """Figures of one name in a part, to be changed in place."""
        self._current: dict[str, Any] = self.content.setdefault(part, {}).setdefault(name, start)
        return self._current

    def save(self) -> None:
        """Replace the file; the figures that were asked for last get the commit that they come from."""
        commits = self._current.setdefault("commits", [])
        commits += [commit()] if commit() not in commits else []
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            partial = self.path.with_suffix(".new")
            partial.write_text(json.dumps(self.content, indent=1))
            os.replace(partial, self.path)

    def failures(self, part: str) -> list[str]:
        """What went wrong in a part."""
        return [text for figures in self.content.get(part, {}).values() for text in figures["failures"]]


def _table(header: str, rows: list[str]) -> list[str]:
    return [header, "|---" + "|--:" * (header.count("|") - 2) + "|", *rows, ""]


def _killed(state: State) -> list[str]:
    kills = state.content.get("kills", {})
    rows = [f"| {name} | {found['kills']} | {len(found['failures'])} |" for name, found in kills.items()]
    n_kills = sum(figures["kills"] for figures in kills.values())
    return [
        "## Kills",
        "",
        f"{n_kills:,} of 500 kills, {len(state.failures('kills')):,} failures.{_commits(kills)}",
        "",
        "Each command is killed with SIGKILL at random moments and in the middle of random calls that change a file, up to "
        "three times in a row. Nothing may be lost at any moment, and the same command has to end in the same bytes as "
        "without interruption, with no file left behind.",
        "",
        *_table("| command | kills | failures |", rows),
    ]


def _failing(state: State) -> list[str]:
    errors = state.content.get("errors", {})
    rows, n_done, n_places, n_sites, n_covered = [], 0, 0, 0, 0
    for name, found in errors.items():
        n_calls, own_sites = found["n_calls"], found.get("n_sites", 0)
        done = [found[kind] for kind in ("no space", "I/O error")]
        covered = min(*done, own_sites)
        n_done, n_places = n_done + sum(done), n_places + 2 * n_calls
        n_sites, n_covered = n_sites + own_sites, n_covered + covered
        rows.append(
            f"| {name} | {n_calls} | {own_sites} | {covered} | {done[0]} | {done[1]} | {len(found['failures'])} |"
        )
    return [
        "## Failing writes",
        "",
        f"{n_done:,} of {n_places:,} possible failures of {len(errors)} commands; {n_covered:,} of {n_sites:,} sites with both "
        f"errors: {len(state.failures('errors')):,} failures.{_commits(errors)}",
        "",
        "A call that changes a file fails: with *no space* from that call on, or once with an *I/O error*. The command has to "
        "end without a traceback, nothing may be lost, and the same command has to end in the same bytes as without the "
        "error. A *site* is one kind of call from the same lines of the package, on files of the same name apart from "
        "numbers; one call of every site, chosen at random, fails before any other does.",
        "",
        *_table(
            "| command | calls that change a file | sites | sites covered | no space | I/O error | failures |", rows
        ),
    ]


def _commits(figures: dict[str, dict[str, Any]]) -> str:
    """On which versions of the code a part ran."""
    found = dict.fromkeys(commit for figure in figures.values() for commit in figure.get("commits", ()))
    return f" Commit{'s' if len(found) > 1 else ''} {', '.join(found)}." if found else ""


@cache
def commit() -> str:
    """Commit of the code, with a plus sign if it has changes."""
    command = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, cwd=HERE)
    return done.stdout.strip() or "unknown"


def _inputs(state: State) -> list[str]:
    found = state.content.get("inputs", {})
    rows = [
        f"| {kind} | {figures['n']:,} | {figures['exit 0']:,} | {figures['exit 2']:,} | {len(figures['failures'])} |"
        for kind, figures in found.items()
    ]
    n = sum(figures["n"] for figures in found.values())
    return [
        "## Generated bad inputs",
        "",
        f"{n:,} inputs through the command line, {len(state.failures('inputs')):,} tracebacks or hangs. A command has to do "
        f"its work (exit code 0) or to say what is wrong (exit code 2), without terminal escapes in its messages.{_commits(found)}",
        "",
        *_table("| kind of input | inputs | exit code 0 | exit code 2 | failures |", rows),
    ]


def _readers(state: State) -> list[str]:
    found = state.content.get("readers", {})
    rows = [f"| {name} | {figures['n']:,} | {len(figures['failures'])} |" for name, figures in found.items()]
    n = sum(figures["n"] for figures in found.values())
    return [
        "## Damaged files through every reader",
        "",
        f"{n:,} files with random damage, {len(state.failures('readers')):,} kinds of failure. Only errors with a code may "
        f"come out.{_commits(found)}",
        "",
        *_table("| reader | files | failures |", rows),
    ]


def _bombs(state: State) -> list[str]:
    found = state.content.get("bombs", {}).get("all")
    if found is None:
        return []
    return [
        "## Image bombs",
        "",
        f"{found['n_files']} files of {found['megabytes']:.1f} MB together, read and turned into views with "
        f"{found['n_threads']} threads: the process peaks at {found['peak_mb']:,.0f} MB (bar: {found['bar_mb']:,} MB), of "
        f"which {found['start_mb']:,.0f} MB are there before the first image. {len(found['skipped'])} files are refused."
        f"{_commits({'all': found})}",
        "",
    ]


def markdown(state: State) -> str:
    """All figures as a page."""
    start = [
        "# Torture",
        "",
        "Made by `make torture`, which can be interrupted and continued. The tests run a share of it. Every part names the "
        "commits that it ran on.",
        "",
    ]
    parts = [("kills", _killed), ("errors", _failing), ("inputs", _inputs), ("readers", _readers), ("bombs", _bombs)]
    lines = [line for part, lines_of in parts if part in state.content for line in lines_of(state)]
    return "\n".join([*start, *lines])


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(markdown(State(Path(sys.argv[1]))))
