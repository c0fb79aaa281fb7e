"""Who may talk to the review server: host, origin, token and size of every request, and headers of every response."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field
from ipaddress import ip_address
from socket import gethostname
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["HEADERS", "MAX_BODY", "Access", "Guard"]

MAX_BODY = 8_000_000
"""Most bytes of a request: the numbers of all images of a very large run."""
POLICY = (
    "default-src 'none'; img-src 'self'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
WELCOME = '<!doctype html><meta charset="utf-8"><title>Newkind</title><link rel="icon" href="/static/icon.svg"><meta http-equiv="refresh" content="0; url=/">'
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def _new_secret() -> str:
    return secrets.token_urlsafe(24)


@dataclass(frozen=True)
class Access:
    """What a request must prove.

    Parameters
    ----------
    host : str
        Address that the server listens on.
    port : int
        Its port.
    token : str, optional
        Token of the first address. Default: a new one.
    session : str, optional
        Value of the cookie that replaces it. Default: a new one.
    """

    host: str
    port: int
    token: str = field(default_factory=_new_secret)
    session: str = field(default_factory=_new_secret)

    def accepts_host(self, value: str) -> bool:
        """Whether a value of the header Host is an own name of this server.

        A server for all addresses of the machine accepts addresses in numbers: a page elsewhere can pretend to be this
        server only by a name.
        """
        name, _, port = value.lower().rpartition(":")
        if port != str(self.port):
            return False
        own = self.host.lower()
        if name in (own, f"[{own}]", "127.0.0.1", "localhost", "[::1]"):
            return True
        return own in ("0.0.0.0", "::") and (name == gethostname().lower() or _is_number(name))  # noqa: S104 - compared

    @property
    def cookie(self) -> str:
        """Name of the cookie; cookies do not distinguish ports, so the name does."""
        return f"newkind-review-{self.port}"

    @property
    def address(self) -> str:
        """Address to open, with the token."""
        name = {"0.0.0.0": gethostname(), "::": gethostname()}.get(self.host, self.host)  # noqa: S104 - compared
        return f"http://{f'[{name}]' if ':' in name else name}:{self.port}/?token={self.token}"


class Guard:
    """ASGI middleware that refuses requests of other sites, other machines and without the token.

    Parameters
    ----------
    app : ASGI application
        Receives the accepted requests.
    access : Access
        What a request must prove.
    max_body : int, default=8_000_000
        Most bytes of a request's body.
    """

    def __init__(self, app: ASGIApp, access: Access, *, max_body: int = MAX_BODY) -> None:
        self.app = app
        self.access = access
        self.max_body = max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] != "http":
            await (self.app(scope, receive, send) if scope["type"] == "lifespan" else _refuse_socket(send))
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, send_guarded)
            return
        body = await _read_body(receive, self.max_body)
        if body is None:
            await PlainTextResponse("The request is too large.", 413)(scope, receive, send_guarded)
            return

        async def receive_again() -> Message:
            nonlocal body
            if body is None:
                return await receive()
            message: Message = {"type": "http.request", "body": body, "more_body": False}
            body = None
            return message

        await self.app(scope, receive_again, send_guarded)

    def _refusal(self, scope: Scope) -> Response | None:
        """Response to a request that is not accepted; None if it is."""
        headers = Headers(scope=scope)
        if len(headers.getlist("host")) != 1 or not self.access.accepts_host(headers["host"]):
            return PlainTextResponse("This server does not answer requests for another host.", 421)
        is_reading = scope["method"] in ("GET", "HEAD")
        if not is_reading and scope["method"] != "POST":
            return PlainTextResponse("This method is not allowed.", 405)
        if is_reading and scope["path"] == "/" and scope["query_string"]:
            given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
            if _equal(given, self.access.token):
                return self._welcome()
        if not _equal(_cookie(headers, self.access.cookie), self.access.session):
            text = "Open the address that `newkind review` printed when it started: it contains the access token."
            return PlainTextResponse(text, 403)
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return PlainTextResponse("Requests of other sites are not accepted.", 403)
        if not is_reading and headers.get("origin", "").lower() != f"http://{headers['host'].lower()}":
            return PlainTextResponse("Requests of other sites are not accepted.", 403)
        try:
            too_large = int(headers.get("content-length", "0")) > self.max_body
        except ValueError:
            return PlainTextResponse("The header Content-Length is not a number.", 400)
        return PlainTextResponse("The request is too large.", 413) if too_large else None

    def _welcome(self) -> Response:
        """Exchange the token for the cookie, and go to the address without it.

        The page goes there by itself: after a redirect from another site, such as a notebook, the browser would not send
        the strict cookie.
        """
        response = HTMLResponse(WELCOME)
        response.set_cookie(self.access.cookie, self.access.session, httponly=True, samesite="strict", path="/")
        return response


def _equal(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), expected.encode())


def _cookie(headers: Headers, name: str) -> str:
    return cookie_parser("; ".join(headers.getlist("cookie"))).get(name, "")


def _is_number(name: str) -> bool:
    """Whether a host is an address in numbers, such as 192.168.0.7 or [fe80::1]."""
    try:
        ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


async def _read_body(receive: Receive, most: int) -> bytes | None:
    """Body of a request; None if it is too large."""
    parts: list[bytes] = []
    length = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return b"".join(parts)
        part = message.get("body", b"")
        length += len(part)
        if length > most:
            return None
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


async def _refuse_socket(send: Send) -> None:
    await send({"type": "websocket.close", "code": 1008})
