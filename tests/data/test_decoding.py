"""Every supported format decodes to what an image viewer shows, and a bad file is refused by name."""

import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from error_codes import raises
from newkind.data.decoding import decode
from newkind.errors import BrokenImage

RAMP = np.tile(np.linspace(0, 255, 32).astype(np.uint8), (16, 1))  # (16, 32): dark on the left, bright on the right
COLOUR = np.stack([RAMP, RAMP[:, ::-1], np.full_like(RAMP, 128)], axis=-1)


def pixels(path: Path) -> np.ndarray:
    image = decode(path.read_bytes(), name=path.name)
    assert image.mode == "RGB"
    return np.asarray(image).astype(int)


@pytest.mark.parametrize("suffix", ["png", "bmp", "tiff", "webp"])
def test_lossless_formats(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x.{suffix}"
    Image.fromarray(COLOUR).save(path, **({"lossless": True} if suffix == "webp" else {}))
    assert np.array_equal(pixels(path), COLOUR)


def test_jpeg(tmp_path: Path) -> None:
    Image.fromarray(COLOUR).save(tmp_path / "x.jpg", quality=95, subsampling=0)
    assert np.abs(pixels(tmp_path / "x.jpg") - COLOUR).mean() < 4


def test_multi_picture_jpeg_of_a_phone(tmp_path: Path) -> None:
    Image.new("RGB", (16, 8), "red").save(
        tmp_path / "x.jpg", format="MPO", save_all=True, append_images=[Image.new("RGB", (16, 8), "blue")]
    )
    assert pixels(tmp_path / "x.jpg")[0, 0, 0] > 250


def test_gif_gives_its_first_frame(tmp_path: Path) -> None:
    red, blue = Image.new("RGB", (8, 8), "red"), Image.new("RGB", (8, 8), "blue")
    red.save(tmp_path / "x.gif", save_all=True, append_images=[blue])
    assert np.array_equal(pixels(tmp_path / "x.gif")[0, 0], [255, 0, 0])


@pytest.mark.parametrize("suffix", ["png", "tiff"])
def test_sixteen_bit_grey_keeps_its_shades(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x.{suffix}"
    Image.fromarray(RAMP.astype(np.uint16) * 257).save(path)
    assert np.abs(pixels(path) - RAMP[..., None]).max() <= 1


def test_floating_point_tiff(tmp_path: Path) -> None:
    Image.fromarray((RAMP / 255).astype(np.float32)).save(tmp_path / "x.tiff")
    assert np.abs(pixels(tmp_path / "x.tiff") - RAMP[..., None]).max() <= 1
    Image.fromarray(RAMP.astype(np.float32) * 40 - 3000).save(tmp_path / "y.tiff")
    assert np.abs(pixels(tmp_path / "y.tiff") - RAMP[..., None]).max() <= 1


def test_palette(tmp_path: Path) -> None:
    Image.fromarray(COLOUR).convert("P", palette=Image.Palette.ADAPTIVE, colors=256).save(tmp_path / "x.png")
    assert np.abs(pixels(tmp_path / "x.png") - COLOUR).mean() < 6


def test_transparency_shows_white(tmp_path: Path) -> None:
    image = Image.new("RGBA", (8, 8), (255, 0, 0, 0))
    image.save(tmp_path / "rgba.png")
    assert np.array_equal(pixels(tmp_path / "rgba.png")[0, 0], [255, 255, 255])
    palette = Image.new("P", (8, 8), 0)
    palette.putpalette([10, 20, 30])
    palette.save(tmp_path / "p.png", transparency=0)
    assert np.array_equal(pixels(tmp_path / "p.png")[0, 0], [255, 255, 255])


def test_cmyk_jpeg_is_not_inverted(tmp_path: Path) -> None:
    Image.fromarray(COLOUR).convert("CMYK").save(tmp_path / "x.jpg", quality=95, subsampling=0)
    assert np.abs(pixels(tmp_path / "x.jpg") - COLOUR).mean() < 6


def test_exif_rotation_is_applied(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was held upright: turn a quarter clockwise to see it right
    Image.fromarray(COLOUR).save(tmp_path / "x.jpg", exif=exif, quality=95, subsampling=0)
    seen = pixels(tmp_path / "x.jpg")
    assert seen.shape == (32, 16, 3)
    assert np.abs(seen - np.rot90(COLOUR, -1)).mean() < 4


def png_header(width: int, height: int) -> bytes:
    """A PNG that claims a size and holds almost nothing."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 99)) + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"just some text", "not-an-image"),
        (b"", "not-an-image"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n", "not-an-image"),  # would start Ghostscript
        (png_header(30_000, 30_000), "image-too-large"),
        (png_header(1, 1), "image-too-small"),
        (png_header(64, 64), "broken-image"),
    ],
)
def test_bad_files_are_refused_by_name(content: bytes, code: str) -> None:
    with raises(BrokenImage, code) as caught:
        decode(content, name="holiday.jpg")
    assert caught.value.facts["name"] == "holiday.jpg"
    assert caught.value.facts["reason"]


def test_an_unsupported_format_is_named() -> None:
    with raises(BrokenImage, "unsupported-format") as caught:
        decode(b"x", name="IMG_1.HEIC")
    assert "HEIC" in caught.value.facts["reason"]


def test_exif_that_cannot_be_written_back_is_broken(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112], exif[0x0106] = 6, 2
    Image.fromarray(COLOUR).save(tmp_path / "x.jpg", exif=exif)
    content = (tmp_path / "x.jpg").read_bytes()
    # A whole number becomes a float: Pillow fails (struct.error) when it writes the EXIF without the rotation.
    damaged = content.replace(struct.pack(">HH", 0x0106, 3), struct.pack(">HH", 0x0106, 11))
    with raises(BrokenImage, "broken-image"):
        decode(damaged, name="x.jpg")


def test_truncated_jpeg_is_broken(tmp_path: Path) -> None:
    path = tmp_path / "x.jpg"
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (64, 64, 3), dtype=np.uint8)).save(path)
    with raises(BrokenImage, "broken-image"):
        decode(path.read_bytes()[:-600], name="x.jpg")


@pytest.mark.parametrize(
    ("shorter_side", "size"), [(None, (800, 600)), (301, (800, 600)), (300, (400, 300)), (70, (100, 75))]
)
def test_a_large_jpeg_is_decoded_with_no_more_pixels_than_needed(
    shorter_side: int | None, size: tuple[int, int]
) -> None:
    coarse = np.random.default_rng(0).integers(0, 255, (6, 8, 3), dtype=np.uint8)
    image = Image.fromarray(coarse).resize((800, 600), Image.Resampling.BICUBIC)
    file = io.BytesIO()
    image.save(file, "JPEG", quality=95)
    found = decode(file.getvalue(), name="x.jpg", shorter_side=shorter_side)
    assert found.size == size
    plain = decode(file.getvalue(), name="x.jpg").resize(size, Image.Resampling.BOX)
    assert np.abs(np.asarray(found, dtype=float) - np.asarray(plain, dtype=float)).mean() < 2


def test_other_formats_and_rotated_jpeg_files_are_reduced_as_they_can() -> None:
    image = Image.new("RGB", (400, 200), "red")
    exif = image.getexif()
    exif[0x0112] = 6  # to be turned by 90 degrees
    jpeg, png = io.BytesIO(), io.BytesIO()
    image.save(jpeg, "JPEG", exif=exif)
    image.save(png, "PNG")
    assert decode(jpeg.getvalue(), name="x.jpg", shorter_side=50).size == (50, 100)
    assert decode(png.getvalue(), name="x.png", shorter_side=50).size == (400, 200)
