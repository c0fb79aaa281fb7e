"""Thumbnails: without metadata, within their budget, and images that cannot be read are left out."""

import base64
import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from newkind.data import ArrayImages, FileImages, Names
from newkind.errors import BrokenImage
from newkind.report.thumbnails import Budget, Fit, data_uri, fit_budget, make_sheets, make_thumbnails, small_image

SIDES = (192, 128, 96, 64)


def budget(n_bytes: int) -> Budget:
    return Budget(n_bytes, SIDES, 60)


def opened(uri: str) -> Image.Image:
    head, _, body = uri.partition(",")
    assert head.startswith("data:image/")
    return Image.open(io.BytesIO(base64.b64decode(body)))


def noise(n: int, side: int = 64) -> ArrayImages:
    pixels = np.random.default_rng(0).integers(0, 255, (n, side, side, 3), dtype=np.uint8)
    return ArrayImages(pixels, [str(i) for i in range(n)])


@pytest.mark.parametrize(
    ("size", "expected"),
    [((800, 600), (96, 72)), ((50, 40), (50, 40)), ((2000, 100), (96, 48)), ((90, 1000), (48, 96))],
)
def test_sizes(tmp_path: Path, size: tuple[int, int], expected: tuple[int, int]) -> None:
    Image.new("RGB", size, "red").save(tmp_path / "a.jpg")
    assert small_image(FileImages(tmp_path, Names(["a.jpg"])), 0, 96).size == expected


def test_images_are_upright_and_have_no_metadata(tmp_path: Path) -> None:
    picture = Image.new("RGB", (400, 200), "blue")
    picture.paste("red", (0, 0, 400, 20))
    exif = Image.Exif()
    exif[0x0112] = 6  # rotated by 90 degrees
    exif[0x010E] = "at home, in the kitchen"
    picture.save(tmp_path / "a.jpg", exif=exif, icc_profile=b"x" * 3000, comment=b"secret", quality=95)
    uri = data_uri(small_image(FileImages(tmp_path, Names(["a.jpg"])), 0, 100), quality=62)
    made = opened(uri)
    assert made.size == (50, 100)
    assert made.convert("RGB").getpixel((48, 50))[0] > 150  # the red edge is at the right now
    assert not made.getexif()
    assert "icc_profile" not in made.info
    assert "comment" not in made.info
    assert len(uri) < 1000


def test_modes_of_images(tmp_path: Path) -> None:
    Image.new("RGBA", (60, 60), (255, 0, 0, 0)).save(tmp_path / "clear.png")
    Image.new("CMYK", (60, 60)).save(tmp_path / "cmyk.jpg")
    Image.fromarray(np.full((60, 60), 65535, np.uint16)).save(tmp_path / "deep.png")
    images = FileImages(tmp_path, Names(["clear.png", "cmyk.jpg", "deep.png"]))
    assert [small_image(images, i, 32).getpixel((5, 5)) for i in (0, 2)] == [(255, 255, 255)] * 2
    assert small_image(images, 1, 32).mode == "RGB"


def test_broken_and_missing_images_are_left_out(tmp_path: Path) -> None:
    Image.new("RGB", (40, 40), "red").save(tmp_path / "good.png")
    (tmp_path / "bad.jpg").write_bytes(b"\xff\xd8\xff nonsense")
    images = FileImages(tmp_path, Names(["bad.jpg", "good.png", "gone.png"]))
    with pytest.raises(BrokenImage):
        small_image(images, 0, 32)
    made = make_thumbnails(images, [10, 11, 12], lambda line: line - 10, budget(10**6))
    assert list(made) == [11]
    sheets = make_sheets(images, [10, 11, 12], lambda line: line - 10, 32, budget(10**6))
    assert sheets.slots == {11: 1}


def test_no_readable_images(tmp_path: Path) -> None:
    images = FileImages(tmp_path, Names(["a.png"]))
    assert make_thumbnails(images, [0], int, budget(1000)) == {}
    assert make_thumbnails(images, [], int, budget(1000)) == {}
    assert make_sheets(images, [], int, 32, budget(1000)).uris == []
    assert fit_budget(images, [0], 1, budget(1000)) == Fit(192, 1)


def test_the_first_images_get_the_budget() -> None:
    images = noise(40)
    steps: list[int] = []
    made = make_thumbnails(images, list(range(39, -1, -1)), int, budget(30_000), advance=steps.append)
    assert sum(map(len, made.values())) <= 30_000
    assert sum(steps) == 40
    assert list(made) == list(range(39, 39 - len(made), -1))
    assert 3 <= len(made) < 40


def test_sides_shrink_with_the_number_of_images() -> None:
    images = noise(8, side=256)
    few, some, many = (fit_budget(images, range(8), n, budget(10**6)) for n in (10, 60, 10_000))
    assert few == Fit(SIDES[0], 10)
    assert few.side > some.side > many.side == SIDES[-1]
    assert some.n_images == 60
    assert many.n_images < 10_000  # only so many fit at the smallest size
    made = [len(data_uri(small_image(images, i, SIDES[-1]), quality=60)) for i in range(8)]
    assert many.n_images * np.mean(made) <= 1.1e6  # an estimate


def test_every_tile_is_in_its_place() -> None:
    colours = np.random.default_rng(1).integers(0, 255, (300, 1, 1, 3), dtype=np.uint8)
    images = ArrayImages(np.broadcast_to(colours, (300, 24, 24, 3)).copy(), [str(i) for i in range(300)])
    steps: list[int] = []
    lines = list(range(0, 600, 2))
    sheets = make_sheets(images, lines, lambda line: line // 2, 40, budget(10**7), advance=steps.append)
    assert sum(steps) == 300
    assert len(sheets.uris) == 2
    for line in (0, 6, 512, 598):
        slot = sheets.slots[line]
        sheet = opened(sheets.uris[slot // sheets.per_sheet]).convert("RGB")
        place = slot % sheets.per_sheet
        middle = ((place % sheets.columns + 0.5) * sheets.side, (place // sheets.columns + 0.5) * sheets.side)
        found = np.array(sheet.getpixel((int(middle[0]), int(middle[1]))), dtype=int)
        assert np.abs(found - colours[line // 2, 0, 0]).max() < 60


def test_sheets_end_when_their_budget_is_spent() -> None:
    images = noise(600, side=32)
    steps: list[int] = []
    sheets = make_sheets(images, list(range(600)), int, 32, budget(260_000), advance=steps.append)
    assert sum(steps) == 600
    assert sum(map(len, sheets.uris)) <= 260_000
    assert len(sheets.slots) % sheets.per_sheet == 0
