"""Two machines: network namespaces that see each other through a cable, each with its own disk and cache.

One of them is killed while it computes features. The same command again ends with the result of one process.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

TIMEOUT = 300
OPTIONS = ["--backbone", "vit_tiny_patch16_224", "--random-weights", "--image-size", "32", "--views", "2"]
PROGRAM = """
import os, pathlib, time
from newkind.backbone import cache_plan
from newkind.backbone.token_store import TokenStore
from newkind.cli import main

cache_plan.FEATURE_GROUP = 4
append, marker = TokenStore.append, os.environ.get("STOP_AT")
n_left = 3

def append_or_stop(store, digests, tokens):
    global n_left
    n_left -= 1
    if marker and not n_left:  # in the middle of the work, until this machine is killed
        pathlib.Path(marker).touch()
        time.sleep(1000)
    append(store, digests, tokens)

TokenStore.append = append_or_stop
main()
"""


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True, timeout=TIMEOUT)


@dataclass
class Machine:
    """A network namespace, and a folder that the other machine cannot see."""

    name: str
    number: int
    disk: Path
    hidden: Path
    """Disk of the other machine."""

    def start(self, program: Path, **variables: str) -> subprocess.Popen[str]:
        """The same command on every machine, but for its own number, data and run folder."""
        launcher = [sys.executable, "-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=1"]
        launcher += [f"--node-rank={self.number}", "--master-addr=10.99.0.1", "--master-port=29599", str(program)]
        command = [*launcher, "discover", str(self.disk / "data"), "--out", str(self.disk / "run"), *OPTIONS]
        hide = f"mount -t tmpfs none '{self.hidden}' && exec \"$@\""
        variables |= {"NEWKIND_CACHE": str(self.disk / "cache"), "GLOO_SOCKET_IFNAME": f"{self.name}-eth"}
        return subprocess.Popen(
            ["ip", "netns", "exec", self.name, "unshare", "--mount", "sh", "-c", hide, "sh", *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "300"} | variables,
        )

    def kill(self) -> None:
        """As if the power failed, except that the other machine is told that the connections are closed."""
        found = subprocess.run(["ip", "netns", "pids", self.name], capture_output=True, text=True, timeout=TIMEOUT)
        for process in map(int, found.stdout.split()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def records(self) -> dict[tuple[str, bytes], bytes]:
        """Checksum of the feature of each view and content on this disk."""
        found = {}
        for index in self.disk.glob("cache/tokens/*/index*.bin"):
            content = index.read_bytes()
            view = index.parent.name.split("-view")[-1][0]
            found |= {(view, content[at : at + 16]): content[at + 16 : at + 20] for at in range(0, len(content), 24)}
        return found


@pytest.fixture
def machines(tmp_path: Path, shapes: Path) -> Iterator[list[Machine]]:
    """Two machines with the same data in different folders."""
    for command in ("ip", "unshare", "mount"):
        if shutil.which(command) is None:
            pytest.skip(f"There is no command {command}; tools/install-iproute2.sh installs it.")
    names = [f"nk{os.getpid()}{letter}" for letter in "ab"]
    disks = [tmp_path / letter for letter in "ab"]
    try:
        for name in names:
            ip("netns", "add", name)
        subprocess.run(
            ["ip", "netns", "exec", names[0], "unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"],
            check=True,
            capture_output=True,
            timeout=TIMEOUT,
        )
        ip("link", "add", f"{names[0]}-eth", "netns", names[0], "type", "veth", "peer", "name", f"{names[1]}-eth", "netns", names[1])  # fmt: skip
        for number, name in enumerate(names):
            ip("-n", name, "addr", "add", f"10.99.0.{number + 1}/24", "dev", f"{name}-eth")
            ip("-n", name, "link", "set", f"{name}-eth", "up")
            ip("-n", name, "link", "set", "lo", "up")
    except subprocess.CalledProcessError as error:
        _remove(names)
        pytest.skip(f"Network namespaces cannot be made here (not root?): {error.stderr!s:.200}")
    for disk in disks:
        shutil.copytree(shapes, disk / "data")
    found = [Machine(name, i, disks[i], disks[1 - i]) for i, name in enumerate(names)]
    yield found
    for each in found:
        each.kill()
    _remove(names)


def _remove(names: list[str]) -> None:
    for name in names:
        subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True, timeout=TIMEOUT)


def test_a_machine_dies_and_comes_back(
    machines: list[Machine], shapes: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    program, marker = tmp_path / "program.py", machines[1].disk / "stopped"
    program.write_text(PROGRAM)
    first, second = machines[0].start(program), machines[1].start(program, STOP_AT=str(marker))
    deadline = time.monotonic() + TIMEOUT
    while not marker.exists() and time.monotonic() < deadline and second.poll() is None:
        time.sleep(0.05)
    machines[1].kill()
    printed, _ = first.communicate(timeout=TIMEOUT)
    second.communicate(timeout=TIMEOUT)
    assert marker.exists(), printed
    assert first.returncode != 0
    assert printed.count("[process-died]") == 1, printed
    assert "Traceback" not in printed.split("[process-died]")[0]
    before = [machine.records() for machine in machines]
    assert 0 < len(before[1]) < len(before[0])

    running = [machine.start(program) for machine in machines]
    printed = [process.communicate(timeout=TIMEOUT)[0] for process in running]
    assert [process.returncode for process in running] == [0, 0], printed
    assert [printed[0].count(words) for words in ("First answer: ", "Results:")] == [1, 1]
    assert not any(words in printed[1] for words in ("Computing", "First answer", "Results:")), printed[1]

    alone = [sys.executable, str(program), "discover", str(shapes), "--out", str(tmp_path / "alone"), *OPTIONS]
    done = subprocess.run(alone, capture_output=True, text=True, check=False, env=environment, timeout=TIMEOUT)
    assert done.returncode == 0, done.stderr
    after = [machine.records() for machine in machines]
    assert not after[0].keys() & after[1].keys()  # each image once
    assert all(old.items() <= new.items() for old, new in zip(before, after, strict=True))
    assert after[0] | after[1] == Machine("", 0, tmp_path, tmp_path).records()  # to the bit
    for name in ("assignments.csv", "categories.json", "features.npy"):
        assert (machines[0].disk / "run" / name).read_bytes() == (tmp_path / "alone" / name).read_bytes()
