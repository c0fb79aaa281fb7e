"""Runs under review, in this process and as servers."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from asgi_client import AsgiClient, MakeClient
from server_process import Server, Servers

from newkind.review.workbench import ReviewOptions, Workbench
from newkind.runs.run import Run
from painted_run import write_run

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run of 48 images in four categories."""
    return write_run(tmp_path / "run", tmp_path / "data")


@pytest.fixture
def make_client(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeClient]:
    """`make_client(**options)`: a client of the run."""
    monkeypatch.setenv("NEWKIND_CACHE", str(tmp_path / "cache"))
    made: list[AsgiClient] = []

    def make(**options: object) -> AsgiClient:
        made.append(AsgiClient(Workbench(run, ReviewOptions(**options))))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for client in made:
        client.close()


@pytest.fixture
def client(make_client: MakeClient) -> AsgiClient:
    return make_client()


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Real server processes."""
    started = Servers(tmp_path_factory.mktemp("cache"))
    yield started
    started.close()


@pytest.fixture(scope="session")
def painted(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of 400 images that is only copied."""
    folder = tmp_path_factory.mktemp("painted")
    return write_run(folder / "run", folder / "data", n_each=100)


@pytest.fixture
def server(painted: Run, tmp_path: Path, servers: Servers) -> Iterator[Server]:
    """A server for a copy of that run; the copy is `tmp_path / "run"`."""
    shutil.copytree(painted.folder, tmp_path / "run")
    started = servers.start(tmp_path / "run")
    yield started
    started.kill()


@pytest.fixture
def page(browser: "Browser", server: Server) -> Iterator["Page"]:
    """The queue; at the end there must be no message and no error in the console."""
    from review_window import visit

    with visit(browser, server) as opened:
        yield opened.page
        # The browser itself logs a refused decision, which the page handles.
        assert [text for text in opened.messages if "409 (Conflict)" not in text] == []
