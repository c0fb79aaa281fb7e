"""The service as a process, with the real model of a small run: answers, refusals, metrics and the end."""

import base64
import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import newkind
from newkind.discovery import Discovery
from painted_run import write_images

BACKBONE = {"backbone": "vit_tiny_patch16_224", "random_weights": True, "image_size": 32, "device": "cpu"}


@dataclass
class Service:
    """A process that serves a run."""

    process: subprocess.Popen[str]
    host: str
    port: int
    run: Discovery
    images: list[Path]

    def ask(self, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, bytes]:
        """Status and body of the response to one request."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=120)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(method, path, body, named)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Limits are small: a megabyte per request, 8 images inside."""
    folder = tmp_path_factory.mktemp("serving")
    write_images(folder / "data", 6)
    run = newkind.discover(
        folder / "data", folder / "run", n_categories=4, effort="quick", views=2, report=False, **BACKBONE
    )
    command = [sys.executable, "-m", "newkind", "serve", str(run.run.folder), "--port", "0"]
    process = subprocess.Popen(
        [*command, "--max-body", "1", "--max-queue", "8", "--device", "cpu"],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert process.stdout is not None
    address = urlsplit(process.stdout.readline().strip())
    images = [folder / "data" / line.file for line in run.assignments]
    yield Service(process, str(address.hostname), int(address.port or 0), run, images)
    process.kill()
    process.communicate(timeout=120)


def form(files: dict[str, bytes]) -> tuple[bytes, str]:
    """Body and content type of a form with files."""
    parts = [
        f'--xyz\r\nContent-Disposition: form-data; name="images"; filename="{name}"\r\n\r\n'.encode()
        + content
        + b"\r\n"
        for name, content in files.items()
    ]
    return b"".join(parts) + b"--xyz--\r\n", "multipart/form-data; boundary=xyz"


def test_a_form_is_answered_in_order_as_predict_answers(service: Service) -> None:
    chosen = service.images[:3]
    body, kind = form({f"{i}.png": path.read_bytes() for i, path in enumerate(chosen)} | {"broken.png": b"nothing"})
    status, answer = service.ask("POST", "/predict", body, content_type=kind)
    assert status == 200, answer
    results = json.loads(answer)["results"]
    assert [result["file"] for result in results] == ["0.png", "1.png", "2.png", "broken.png"]
    for result, line in zip(results[:3], service.run.predict(*chosen), strict=True):
        assert result["category"] == line.category
        assert result["confidence"] == pytest.approx(line.confidence, abs=2e-4)
        assert result["novelty"] == pytest.approx(line.novelty, abs=2e-4)
    assert results[3]["status"] == "unreadable"
    assert results[3]["reason"]


def test_json_and_a_plain_image(service: Service) -> None:
    content = service.images[0].read_bytes()
    data = base64.b64encode(content).decode()
    body = json.dumps({"images": [{"name": "a", "data": data}, data]}).encode()
    status, answer = service.ask("POST", "/predict", body, content_type="application/json")
    assert status == 200, answer
    results = json.loads(answer)["results"]
    assert [result["file"] for result in results] == ["a", "image-1"]
    status, answer = service.ask("POST", "/predict", content, content_type="image/png")
    assert json.loads(answer)["results"][0]["category"] == results[0]["category"]


BAD = {
    "not JSON": (b"{", "application/json", 400),
    "no images": (b"{}", "application/json", 400),
    "an empty list": (b'{"images": []}', "application/json", 400),
    "a number as data": (b'{"images": [{"data": 3}]}', "application/json", 400),
    "not base64": (b'{"images": ["*"]}', "application/json", 400),
    "a deep list": (b"[" * 10_000, "application/json", 400),
    "another type": (b"x", "text/plain", 415),
    "a form without a boundary": (b"x", "multipart/form-data", 400),
    "a form without files": (form({})[0], form({})[1], 400),
    "too large": (b"x" * 1_100_000, "image/png", 413),
    "more images than places": (form({f"{i}": b"x" for i in range(9)})[0], form({})[1], 503),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_requests_are_refused_with_a_reason(service: Service, name: str) -> None:
    body, kind, expected = BAD[name]
    status, answer = service.ask("POST", "/predict", body, content_type=kind)
    assert status == expected
    assert json.loads(answer)["error"]
    assert service.ask("GET", "/healthz")[0] == 200


def test_other_hosts_and_sites_are_refused(service: Service) -> None:
    assert service.ask("GET", "/healthz", host="evil.example")[0] == 421
    assert service.ask("GET", "/healthz", host="localhost:1")[0] == 200
    assert service.ask("POST", "/predict", b"x", content_type="image/png", sec_fetch_site="cross-site")[0] == 403
    assert service.ask("GET", "/predict")[0] == 405
    assert service.ask("GET", "/nothing")[0] == 404


def test_metrics_count_what_happened(service: Service) -> None:
    def value(name: str) -> float:
        lines = service.ask("GET", "/metrics")[1].decode().splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name))

    before = value("newkind_batch_images_total"), value('newkind_requests_total{code="200"}')
    content = service.images[0].read_bytes()
    assert service.ask("POST", "/predict", content, content_type="image/png")[0] == 200
    after = value("newkind_batch_images_total"), value('newkind_requests_total{code="200"}')
    assert (after[0] - before[0], after[1] - before[1]) == (1, 1)
    assert value("newkind_queue_images") == 0
    assert value('newkind_request_seconds_bucket{le="+Inf"}') == value("newkind_request_seconds_count")


def test_sigterm_ends_it_with_code_0(service: Service) -> None:
    """The last test of this file: the process is gone afterwards."""
    service.process.send_signal(signal.SIGTERM)
    assert service.process.wait(timeout=120) == 0
