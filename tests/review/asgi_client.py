"""Requests to the application in this process, with any bytes in them."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_to_bytes

from newkind.review.app import make_app
from newkind.review.guard import Access
from newkind.review.workbench import Workbench

__all__ = ["HOST", "Answered", "AsgiClient", "MakeClient"]

HOST = "127.0.0.1:8642"


@dataclass(frozen=True)
class Answered:
    """Status, headers and body of a response."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def text(self) -> str:
        return self.body.decode()


class AsgiClient:
    """Client of a workbench's application; by default a browser that has the cookie."""

    def __init__(self, workbench: Workbench) -> None:
        self.workbench = workbench
        self.access = Access("127.0.0.1", 8642)
        self.app = make_app(workbench, self.access)
        # A loop in a thread of its own: the browser's tests have one in the main thread.
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.headers = {
            "host": HOST,
            "cookie": f"{self.access.cookie}={self.access.session}",
            "origin": f"http://{HOST}",
            "content-type": "application/json",
        }

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()
        self.workbench.close()

    def get(self, target: str, **headers: str | None) -> Answered:
        return self.send("GET", target, headers=headers)

    def post(self, target: str, content: Any = None, **headers: str | None) -> Answered:
        return self.send("POST", target, json.dumps(content).encode(), headers=headers)

    def decide(self, **decision: Any) -> Answered:
        number = self.workbench.decisions.log.last
        return self.post("/api/decide", {"decision": decision, "based_on": number})

    def send(
        self, method: str, target: str, body: bytes = b"", *, headers: dict[str, str | None] | None = None
    ) -> Answered:
        """Send a request; a header that is None is left out, and _ in names of headers stands for -."""
        path, _, query = target.partition("?")
        given = self.headers | {name.replace("_", "-"): value for name, value in (headers or {}).items()}
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote_to_bytes(path).decode("utf-8", "replace"),
            "raw_path": path.encode("utf-8", "surrogatepass"),
            "query_string": query.encode("utf-8", "surrogatepass"),
            "root_path": "",
            "headers": [
                (name.encode(), value.encode("latin-1", "replace"))
                for name, value in given.items()
                if value is not None
            ],
            "client": ("127.0.0.1", 50000),
            "server": ("127.0.0.1", 8642),
        }
        messages: list[dict[str, Any]] = []
        parts = [
            {"type": "http.request", "body": body[i : i + 65536], "more_body": True} for i in range(0, len(body), 65536)
        ]
        parts.append({"type": "http.request", "body": b"", "more_body": False})

        async def receive() -> dict[str, Any]:
            return parts.pop(0) if parts else {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            messages.append(dict(message))

        asyncio.run_coroutine_threadsafe(self.app(scope, receive, send), self.loop).result(120)  # type: ignore[arg-type]
        start = next(message for message in messages if message["type"] == "http.response.start")
        content = b"".join(message.get("body", b"") for message in messages if message["type"] == "http.response.body")
        return Answered(start["status"], {k.decode(): v.decode() for k, v in start["headers"]}, content)


MakeClient = Callable[..., AsgiClient]
