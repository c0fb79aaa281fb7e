"""Who may talk to the server: host, origin, token, size; and the headers of every response."""

import pytest
from asgi_client import HOST, AsgiClient, MakeClient

from newkind.review.guard import HEADERS, MAX_BODY, Access

ADDRESSES = ["/", "/categories", "/static/api.js", "/thumb/0", "/full/0", "/api/state", "/nothing"]


@pytest.mark.parametrize("address", ADDRESSES)
def test_nothing_is_shown_without_the_cookie(client: AsgiClient, address: str) -> None:
    assert client.get(address, cookie=None).status == 403
    assert client.get(address, cookie=f"{client.access.cookie}=wrong").status == 403
    assert client.get(address, cookie=f"newkind-review-1={client.access.session}").status == 403
    assert client.get(address).status in (200, 404)


def test_the_token_is_exchanged_for_a_strict_cookie(client: AsgiClient) -> None:
    done = client.get(f"/?token={client.access.token}", cookie=None, origin=None)
    assert done.status == 200
    cookie = done.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert client.access.token not in done.text + cookie  # the cookie is another secret
    assert 'http-equiv="refresh" content="0; url=/"' in done.text
    assert client.get("/?token=wrong", cookie=None).status == 403
    assert client.get(f"/?token={client.access.session}", cookie=None).status == 403
    assert client.get(f"/categories?token={client.access.token}", cookie=None).status == 403


@pytest.mark.parametrize(
    "host", ["evil.example:8642", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.evil.example:8642", "", None]
)
def test_other_hosts_are_refused(client: AsgiClient, host: str | None) -> None:
    assert client.get("/", host=host).status == 421


@pytest.mark.parametrize("host", ["localhost:8642", "LOCALHOST:8642", "[::1]:8642"])
def test_names_of_this_machine_are_accepted(client: AsgiClient, host: str) -> None:
    assert client.get("/", host=host).status == 200


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "https://127.0.0.1:8642", "http://127.0.0.1:1", "http://localhost:8642", "", None],
)
def test_changes_of_other_origins_are_refused(client: AsgiClient, origin: str | None) -> None:
    decision = {"decision": {"kind": "rename", "category": "new-01", "name": "pear"}, "based_on": 0}
    assert client.post("/api/decide", decision, origin=origin).status == 403
    assert client.workbench.decisions.log.last == 0


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_pages_of_other_sites_cannot_read(client: AsgiClient, site: str) -> None:
    assert client.get("/api/state", sec_fetch_site=site).status == 403
    assert client.get("/api/state", sec_fetch_site="same-origin").status == 200


def test_nothing_changes_by_get(client: AsgiClient) -> None:
    for address in ("/api/decide", "/api/undo", "/api/redo", "/api/grow", "/api/grown"):
        assert client.get(address).status == 405
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        assert client.send(method, "/api/decide").status == 405
    assert client.workbench.decisions.log.last == 0


def test_large_requests_are_refused(client: AsgiClient) -> None:
    assert client.send("POST", "/api/decide", b" " * (MAX_BODY + 1)).status == 413
    assert client.send("POST", "/api/decide", b"{}", headers={"content-length": str(MAX_BODY + 1)}).status == 413
    assert client.send("POST", "/api/decide", b"{}", headers={"content-length": "many"}).status == 400


@pytest.mark.parametrize("address", ADDRESSES)
def test_every_response_has_the_safe_headers(client: AsgiClient, address: str) -> None:
    for done in (client.get(address), client.get(address, cookie=None), client.get(address, host="evil.example")):
        for name, value in HEADERS.items():
            assert done.headers[name.lower()] == value
    policy = HEADERS["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert "http" not in policy


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("/", "text/html; charset=utf-8"),
        ("/static/api.js", "text/javascript; charset=utf-8"),
        ("/static/review.css", "text/css; charset=utf-8"),
        ("/static/icon.svg", "image/svg+xml"),
        ("/api/state", "application/json"),
        ("/full/0", "image/png"),
    ],
)
def test_content_types_are_fixed(client: AsgiClient, address: str, kind: str) -> None:
    assert client.get(address).headers["content-type"] == kind


def test_a_read_only_page_refuses_decisions(make_client: MakeClient) -> None:
    client = make_client(read_only=True)
    assert client.decide(kind="rename", category="new-01", name="pear").json()["code"] == "read-only"
    assert client.post("/api/undo", {"based_on": 0}).json()["code"] == "read-only"
    assert "data-do" not in client.get("/").text
    client.workbench.close()
    assert not client.workbench.decisions.log.file.exists()


def test_a_server_for_all_addresses_accepts_numbers_only() -> None:
    access = Access("0.0.0.0", 80)
    assert access.accepts_host("192.168.0.7:80")
    assert access.accepts_host("[fe80::1]:80")
    assert not access.accepts_host("evil.example:80")
    assert not Access("127.0.0.1", 80).accepts_host("192.168.0.7:80")
    assert HOST not in Access("127.0.0.1", 8642).token
