"""Images that the server sends: only those of the run, only from its data folder, only as images."""

import io
import json
import os
from pathlib import Path

import numpy as np
import pytest
from asgi_client import AsgiClient, MakeClient
from PIL import Image

from newkind.data import ArrayImages
from newkind.report.images import RunImages
from newkind.review.originals import Originals
from newkind.review.thumbnails import SIDE, Thumbnails
from newkind.review.workbench import Workbench
from newkind.runs.run import Run
from painted_run import write_run


def rename_file(run: Run, name: str) -> None:
    """Let the first image of a run have another name, also in its table."""
    old = run.assignments_file.read_text().splitlines()[1].split(",")[0]
    table = Path(run.config()["data"])
    for path in (run.assignments_file, table):
        path.write_text(path.read_text().replace(old, name, 1))


def secret_outside(tmp_path: Path) -> Path:
    path = tmp_path / "private" / "secret.png"
    path.parent.mkdir()
    Image.new("RGB", (20, 20), (1, 2, 3)).save(path)
    return path


@pytest.mark.parametrize("kind", ["traversal", "absolute", "link", "folder link"])
def test_images_outside_the_data_folder_are_not_sent(
    run: Run, tmp_path: Path, make_client: MakeClient, kind: str
) -> None:
    secret = secret_outside(tmp_path)
    data = tmp_path / "data"
    if kind == "link":
        (data / "link.png").symlink_to(secret)
    elif kind == "folder link":
        (data / "folder").symlink_to(secret.parent)
    name = {"traversal": "../private/secret.png", "absolute": str(secret), "link": "link.png"}.get(
        kind, "folder/secret.png"
    )
    rename_file(run, name)
    client = make_client()
    assert client.workbench.images.place[0] >= 0
    for address in ("/thumb/0", "/full/0"):
        done = client.get(address)
        assert done.status == 404
        assert done.headers["content-type"] == "application/json"
    facts = client.get("/api/about?line=0").json()["facts"]
    assert facts["Problem"] == "outside the data folder"
    assert "Size" not in facts
    assert client.get("/thumb/1").status == 200
    command = f"newkind review {run.folder} --allow-outside"
    assert command in client.get("/").body.decode()
    allowed = make_client(allow_outside=True)
    assert allowed.get("/full/0").body == secret.read_bytes()
    assert command not in allowed.get("/").body.decode()


@pytest.mark.parametrize(
    "path",
    [
        "/thumb/../../etc/passwd",
        "/thumb/%2e%2e%2fdata",
        "/full/img/0-00.png",
        "/full/-1",
        "/full/48",
        "/full/٣",
        "/full/1e1",
        "/full/" + "9" * 5000,
        "/static/../app.py",
        "/static/%2e%2e%2fapp.py",
        "/static//etc/passwd",
        "/static/",
    ],
)
def test_addresses_are_numbers_and_not_paths(client: AsgiClient, path: str) -> None:
    assert client.get(path).status == 404


def test_files_that_are_not_images_are_not_sent(run: Run, tmp_path: Path, make_client: MakeClient) -> None:
    rename_file(run, "notes.png")
    (tmp_path / "data" / "notes.png").write_text("<script>alert(1)</script>")
    client = make_client()
    assert client.get("/thumb/0").status == 404
    assert client.get("/full/0").status == 404
    os.mkfifo(tmp_path / "data" / "pipe.png")
    os.replace(tmp_path / "data" / "pipe.png", tmp_path / "data" / "notes.png")
    assert client.get("/full/0").status == 404


def test_the_full_image_is_the_file_itself(client: AsgiClient, tmp_path: Path) -> None:
    name = client.workbench.snapshot.answer.files[0]
    done = client.get("/full/0")
    assert done.body == (tmp_path / "data" / name).read_bytes()
    assert done.headers["content-type"] == "image/png"


def test_formats_that_browsers_cannot_show_are_converted(run: Run, tmp_path: Path, make_client: MakeClient) -> None:
    rename_file(run, "scan.tif")
    pixels = np.random.default_rng(0).integers(0, 255, (20, 30, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "data" / "scan.tif")
    done = make_client().get("/full/0")
    assert done.headers["content-type"] == "image/png"
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(done.body))), pixels)


def test_thumbnails_have_no_metadata_and_a_bounded_size(run: Run, tmp_path: Path, make_client: MakeClient) -> None:
    rename_file(run, "photo.jpg")
    exif = Image.Exif()
    exif[0x010F] = "Camera of a person"
    Image.new("RGB", (900, 600), "red").save(tmp_path / "data" / "photo.jpg", exif=exif)
    client = make_client()
    done = client.get("/thumb/0")
    assert max(Image.open(io.BytesIO(done.body)).size) == SIDE
    assert b"Camera of a person" not in done.body
    assert client.get("/api/about?line=0").json()["facts"]["Camera"] == "Camera of a person"


def test_thumbnails_are_kept_until_the_file_changes(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "data" / Workbench(run).snapshot.answer.files[0]

    def fresh() -> Thumbnails:
        return Thumbnails(Workbench(run).originals, tmp_path / "cache")

    first = fresh().get(0)
    kept = file.stat()
    Image.new("RGB", (40, 30), "white").save(tmp_path / "other.png")
    content = (tmp_path / "other.png").read_bytes()
    file.write_bytes(content + b"\0" * (kept.st_size - len(content)))
    os.utime(file, ns=(kept.st_atime_ns, kept.st_mtime_ns))
    assert fresh().get(0) == first  # same size and time: from the cache file
    os.utime(file)
    assert fresh().get(0) != first


def test_without_a_cache_folder_thumbnails_are_made(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    thumbnails = Thumbnails(Workbench(run).originals, tmp_path / "file")
    assert thumbnails.get(0).media_type.startswith("image/")


def test_images_in_memory_are_sent_as_png() -> None:
    pixels = np.random.default_rng(0).integers(0, 255, (3, 16, 12), dtype=np.uint8)
    originals = Originals(RunImages(images=ArrayImages(pixels, ["a", "b", "c"]), place=np.array([2, -1])))
    shown = np.asarray(Image.open(io.BytesIO(originals.full(0).content)).convert("L"))
    assert np.array_equal(shown, pixels[2])
    assert originals.facts(0)["Size"] == "12 x 16 pixels"
    assert originals.problem(0) == ""
    assert originals.problem(1) == "not found"


def test_a_run_without_its_images_can_be_reviewed(tmp_path: Path, make_client: MakeClient, run: Run) -> None:
    (tmp_path / "data").rename(tmp_path / "moved")
    client = make_client()
    assert client.get("/").status == 200
    assert client.get("/thumb/0").status == 404
    assert "--data" in client.get("/").text
    assert make_client(data=tmp_path / "moved").get("/thumb/0").status == 200


def test_a_run_of_features_alone_can_be_reviewed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEWKIND_CACHE", str(tmp_path / "cache"))
    run = write_run(tmp_path / "run", tmp_path / "data")
    config = run.config()
    run.config_file.write_text(json.dumps(config | {"data": "", "root": None}))
    client = AsgiClient(Workbench(run))
    for address in (
        "/",
        "/categories",
        "/category?id=new-01",
        "/map",
        "/api/map",
        "/grow?id=new-01",
        "/api/split?id=new-01",
    ):
        assert client.get(address).status == 200
    client.close()
