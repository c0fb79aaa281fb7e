"""Figures of the torture suite, kept in a file so that its parts can be interrupted and continued, and their Markdown.

python tests/torture/figures.py build/torture.json benchmarks/results/torture.md
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

__all__ = ["State"]

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
        found: dict[str, Any] = self.content.setdefault(part, {}).setdefault(name, start)
        return found

    def save(self) -> None:
        """Replace the file."""
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
    kills, errors = state.content.get("kills", {}), state.content.get("errors", {})
    names = [*kills, *(name for name in errors if name not in kills)]
    rows = []
    for name in names:
        killed, failing = kills.get(name, {}), errors.get(name, {})
        n_failed = len(killed.get("failures", ())) + len(failing.get("failures", ()))
        n_calls = failing.get("n_calls", 0)
        rows.append(
            f"| {name} | {killed.get('kills', 0)} | {n_calls or '-'} | {failing.get('no space', 0)} "
            f"| {failing.get('I/O error', 0)} | {n_failed} |"
        )
    n_kills = sum(figures["kills"] for figures in kills.values())
    n_errors = sum(figures["no space"] + figures["I/O error"] for figures in errors.values())
    n_places = 2 * sum(figures["n_calls"] for figures in errors.values())
    n_failed = len(state.failures("kills")) + len(state.failures("errors"))
    return [
        "## Kills and failing writes",
        "",
        f"{n_kills:,} kills and {n_errors:,} failing calls (of {n_places:,} in these commands, two kinds of error per call): "
        f"{n_failed:,} failures.",
        "",
        "Each command is killed with SIGKILL at random moments and in the middle of random calls that change a file, up to "
        "three times in a row. In other trials a call fails: with *no space* from that call on, or once with an *I/O error*. "
        "The command has to end without a traceback, nothing may be lost at any moment, and the same command has to end in "
        "the same bytes as without interruption, with no file left behind.",
        "",
        *_table("| command | kills | calls that change a file | no space | I/O error | failures |", rows),
    ]


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
        "its work (exit code 0) or to say what is wrong (exit code 2), without terminal escapes in its messages.",
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
        "come out.",
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
        f"which {found['start_mb']:,.0f} MB are there before the first image. {len(found['skipped'])} files are refused.",
        "",
    ]


def markdown(state: State) -> str:
    """All figures as a page."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, cwd=HERE)
    start = [
        "# Torture",
        "",
        f"Made by `make torture` (commit {done.stdout.strip() or 'unknown'}), which can be interrupted and continued. The "
        "tests run a share of it.",
        "",
    ]
    parts = [("kills", _killed), ("inputs", _inputs), ("readers", _readers), ("bombs", _bombs)]
    lines = [line for part, lines_of in parts if part in state.content for line in lines_of(state)]
    return "\n".join([*start, *lines])


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(markdown(State(Path(sys.argv[1]))))
