"""Review servers as processes of their own, which can be killed. One process imports everything; servers are forks of it."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

__all__ = ["Server", "Servers"]

PROGRAM = """
import json, os, sys
from pathlib import Path
from newkind.review.serve import serve
from newkind.review.workbench import ReviewOptions
from newkind.runs.run import Run
for line in sys.stdin:
    folder, read_only = json.loads(line)
    if os.fork() == 0:
        sys.stdin.close()
        tell = lambda address: print(json.dumps([os.getpid(), address]), flush=True)
        serve(Run.open(Path(folder)), ReviewOptions(read_only=read_only), port=0, ready=tell)
        os._exit(0)
"""


class Server:
    """A running server."""

    def __init__(self, pid: int, address: str) -> None:
        self.pid, self.address = pid, address
        self.base = address.split("/?")[0]
        self.host = urlsplit(address).netloc
        self.cookie = ""

    def kill(self) -> None:
        """Kill -9."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def stop(self) -> None:
        """Ask it to end, as Ctrl-C does."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGINT)

    def open(self) -> None:
        """Exchange the token for the cookie."""
        connection = http.client.HTTPConnection(self.host, timeout=120)
        connection.request("GET", self.address.removeprefix(self.base))
        self.cookie = (connection.getresponse().getheader("Set-Cookie") or "").split(";")[0]
        connection.close()

    def post(self, path: str, content: Any) -> Any:
        """Content of the response; OSError or HTTPException if the server is gone, ValueError if it refuses."""
        connection = http.client.HTTPConnection(self.host, timeout=120)
        try:
            headers = {"Content-Type": "application/json", "Origin": self.base, "Cookie": self.cookie}
            connection.request("POST", path, json.dumps(content), headers)
            response = connection.getresponse()
            body = response.read()
        finally:
            connection.close()
        if response.status != 200:
            raise ValueError(f"{response.status}: {body!r}")
        return json.loads(body)


class Servers:
    """Starts servers; all of them end with it."""

    def __init__(self, cache: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "NEWKIND_CACHE": str(cache)},
        )
        self.started: list[Server] = []

    def start(self, folder: Path, *, read_only: bool = False) -> Server:
        """Start a server for a run; returns when it answers."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([str(folder), read_only]) + "\n")
        self.process.stdin.flush()
        server = Server(*json.loads(self.process.stdout.readline()))
        self.started.append(server)
        return server

    def close(self) -> None:
        for server in self.started:
            server.kill()
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(120)
        self.process.stdout.close()
