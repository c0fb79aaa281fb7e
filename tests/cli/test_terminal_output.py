"""What a terminal shows after a run, with live displays that are drawn over."""

import json
import os
import pty
import re
import subprocess
import sys
import threading
from pathlib import Path

TOKEN = re.compile(r"\x1b\[(\d*)([A-Za-z])|\x1b\[\?\d+[hl]|([\r\n])|([^\x1b\r\n]+)")


def screen(output: str) -> list[str]:
    """Lines of a wide terminal after this output: text, line ends, cursor up, erased lines."""
    lines, row, column = [""], 0, 0
    for number, command, end, text in TOKEN.findall(output):
        if command == "A":
            row = max(row - int(number or 1), 0)
        elif command == "K":
            lines[row] = ""
        elif end == "\r":
            column = 0
        elif end == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif text:
            lines[row] = lines[row][:column].ljust(column) + text + lines[row][column + len(text) :]
            column += len(text)
    return [line.rstrip() for line in lines]


def test_the_screen() -> None:
    assert screen("one\r\ntwo\r\x1b[2Kzwei\r\n\x1b[1A\x1b[2KZ") == ["one", "Z", ""]


def test_messages_and_the_live_display_do_not_share_a_line(
    features: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    command = [
        sys.executable,
        "-m",
        "newkind",
        "discover",
        str(features),
        "--out",
        str(tmp_path / "run"),
        "--no-report",
    ]
    command += ["--recipe", "release", "--n-categories", "auto", "--epochs", "3", "--batch-size", "64"]
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command, stdout=theirs, stderr=theirs, env=environment | {"TERM": "xterm"})
    os.close(theirs)
    deadline = threading.Timer(300, process.kill)
    deadline.start()
    output = b"".join(iter(lambda: read(ours), b""))
    assert process.wait() == 0
    deadline.cancel()
    os.close(ours)
    lines = screen(output.decode())
    assert any(line.startswith("Results:") for line in lines), lines
    assert sum(bool(re.search(r" 3/3\b", line)) for line in lines) == 1, lines  # the bar over epochs
    (losses,) = [i for i, line in enumerate(lines) if re.search(r"\btotal \d", line)]
    assert re.fullmatch(r"(?:\w+ -?\d+\.\d\d\s*)+", lines[losses])
    used = json.loads((tmp_path / "run" / "config.json").read_text())["n_categories"]["used"]
    assert re.search(rf"\b{used}\b", lines[losses + 1]), lines  # the message about categories in use


def read(terminal: int) -> bytes:
    """The next output; nothing when the other side is closed, which Linux reports as an error."""
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""
