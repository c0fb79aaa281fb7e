"""Counts and commands for display."""

import subprocess

import pytest

from newkind.data.wording import count, shell_quoted


def test_number_and_noun_agree() -> None:
    assert [count(n, "file") for n in (0, 1, 2000)] == ["0 files", "1 file", "2,000 files"]
    assert count(3, "class", "classes") == "3 classes"


@pytest.mark.parametrize("name", ["plain", "two words", "it's", "a$b`c`", "-x", "line\nfeed", "tab\t'\\", "caf\udce9"])
def test_a_shell_reads_the_argument_back(name: str) -> None:
    quoted = shell_quoted(name)
    assert quoted.isprintable()
    done = subprocess.run(["bash", "-c", f"printf %s {quoted}"], capture_output=True, check=True, timeout=120)
    expected = f"./{name}" if name.startswith("-") else name
    assert done.stdout.decode("utf-8", "surrogateescape") == expected
