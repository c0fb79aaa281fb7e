"""Clients that are slow, silent or many: a request has a time to arrive in, and all bodies together a size."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest
import uvicorn
from numpy.typing import NDArray
from own_loop import run_alone

from newkind import http_server
from newkind.data.crops import ViewRecipe
from newkind.export.onnx_model import Answers, ImageModel
from newkind.http_server import listen
from newkind.serving.app import MOST_BODIES, ServiceOptions, make_app

SCOPE = {
    "type": "http",
    "http_version": "1.1",
    "method": "POST",
    "path": "/predict",
    "query_string": b"",
    "root_path": "",
}


class Even(ImageModel):
    """A model that does not look at the image."""

    def __init__(self) -> None:
        super().__init__(ViewRecipe(image_size=16), (0,), 0, [("a", "known"), ("b", "new")])

    def compute(self, pixels: NDArray[np.uint8]) -> Answers:
        return Answers(np.full((len(pixels), 2), 0.5, dtype=np.float32), None)


async def ask(app: Any, receive: Callable[[], Awaitable[dict[str, Any]]], kind: str = "image/png") -> tuple[int, Any]:
    """Status and JSON of the answer to one request."""
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    headers = [(b"host", b"localhost"), (b"content-type", kind.encode())]
    await app(SCOPE | {"headers": headers}, receive, send)
    return sent[0]["status"], json.loads(b"".join(message.get("body", b"") for message in sent[1:]))


def test_a_body_that_does_not_arrive_is_not_waited_for() -> None:
    async def never() -> dict[str, Any]:
        await asyncio.sleep(3600)
        raise AssertionError

    status, answer = run_alone(ask(make_app(Even(), ServiceOptions(max_seconds=0.05)), never))
    assert (status, set(answer)) == (408, {"error"})


def test_all_bodies_together_have_a_limit() -> None:
    """Many clients that send almost all of a large body and then wait would fill the memory."""

    async def run() -> list[int]:
        app, go = make_app(Even(), ServiceOptions(max_body=1000)), asyncio.Event()

        def client() -> Callable[[], Awaitable[dict[str, Any]]]:
            parts = [{"type": "http.request", "body": b"x" * 900, "more_body": True}]

            async def receive() -> dict[str, Any]:
                if parts:
                    return parts.pop()
                await go.wait()
                return {"type": "http.disconnect"}

            return receive

        requests = [asyncio.create_task(ask(app, client())) for _ in range(3 * MOST_BODIES)]
        done, _ = await asyncio.wait(requests, timeout=5)
        go.set()
        await asyncio.gather(*requests, return_exceptions=True)
        assert app.n_bytes == 0
        return [request.result()[0] for request in done]

    refused = run_alone(run())
    assert set(refused) == {503}
    assert len(refused) >= MOST_BODIES


def test_any_name_can_be_sent_back() -> None:
    body = json.dumps({"images": [{"name": "\ud800\x1b", "data": "AAAA"}]}).encode()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    status, answer = run_alone(ask(make_app(Even(), ServiceOptions()), receive, "application/json"))
    assert status == 200
    assert answer["results"][0]["file"] == "\ud800\x1b"


WHOLE = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"


@pytest.mark.parametrize("parts", [[b""], [WHOLE[:30]], [WHOLE, WHOLE[:1]]], ids=["nothing", "a part", "a second part"])
def test_a_silent_client_is_disconnected(parts: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the first request, in the middle of its head, and in the head of a second one."""
    monkeypatch.setattr(http_server, "SECONDS_FOR_HEAD", 0.1)

    async def run() -> None:
        ready = asyncio.Event()
        app = make_app(Even(), ServiceOptions())
        config = uvicorn.Config(
            app, log_level="warning", ws="none", http=http_server._Protocol, timeout_keep_alive=3600
        )
        server = http_server._Server(config, ready.set)
        with listen("127.0.0.1", 0) as listener:
            task = asyncio.create_task(server.serve(sockets=[listener]))
            await ready.wait()
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            for part in parts:
                writer.write(part)
                if part == WHOLE:
                    await reader.readuntil(b"}")
            await asyncio.wait_for(reader.read(), 60)  # until the server closes the connection
            writer.close()
            server.should_exit = True
            await task

    run_alone(run())
