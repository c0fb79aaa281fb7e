"""Every supported format decodes to what an image viewer shows, and a bad file is refused by name."""

import io
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps
from PIL.PngImagePlugin import PngImageFile

from error_codes import raises
from newkind.data import decoding, items, read_folder, rgb
from newkind.data.decoding import decode, heic_is_installed
from newkind.data.image_check import check_image
from newkind.data.items import FileImages
from newkind.data.names import Names
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
        decode(b"x", name="IMG_1.AVIF")
    assert "AVIF" in caught.value.facts["reason"]


def test_exif_that_cannot_be_written_back_does_not_matter(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112], exif[0x0106] = 6, 2
    Image.fromarray(COLOUR).save(tmp_path / "x.jpg", exif=exif)
    content = (tmp_path / "x.jpg").read_bytes()
    # A whole number becomes a float: Pillow could not write the EXIF without the rotation; nothing is written here.
    damaged = content.replace(struct.pack(">HH", 0x0106, 3), struct.pack(">HH", 0x0106, 11))
    assert damaged != content
    assert decode(damaged, name="x.jpg").size == (16, 32)


@pytest.mark.parametrize("exif", [b"XX*\0\x08\0\0\0", b"II*\0", b""])
@pytest.mark.parametrize("density", [{"dpi": (72, 72)}, {}])
def test_a_damaged_exif_header_turns_nothing(tmp_path: Path, exif: bytes, density: dict[str, object]) -> None:
    Image.fromarray(COLOUR).save(tmp_path / "x.jpg", quality=95, subsampling=0, exif=b"Exif\0\0" + exif, **density)
    assert np.abs(pixels(tmp_path / "x.jpg") - COLOUR).mean() < 4


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


@pytest.mark.parametrize("orientation", range(1, 9))
def test_every_orientation_is_turned_as_pillow_turns_it(tmp_path: Path, orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(COLOUR).save(tmp_path / "x.png", exif=exif)
    with Image.open(tmp_path / "x.png") as image:
        expected = np.asarray(ImageOps.exif_transpose(image))
    assert np.array_equal(pixels(tmp_path / "x.png"), expected)


@pytest.mark.parametrize("size", [(70, 30), (30, 70)])
@pytest.mark.parametrize("mode", ["RGBA", "LA", "P", "L", "CMYK", "I;16", "I", "F"])
def test_strips_give_the_same_pixels_as_the_whole(
    monkeypatch: pytest.MonkeyPatch, mode: str, size: tuple[int, int]
) -> None:
    values = np.random.default_rng(0).integers(0, 256, (size[1], size[0], 4), dtype=np.uint8)
    image = Image.fromarray(values, "RGBA")
    if mode == "P":
        image = image.convert("RGB").convert("P")
        image.info["transparency"] = bytes(range(256))
    elif mode in ("I;16", "I", "F"):
        image = Image.fromarray(values[..., 0].astype({"I;16": np.uint16, "I": np.int32, "F": np.float32}[mode]) * 97)
    else:
        image = image.convert(mode)
    for factor in (1, 3):
        whole = rgb.to_rgb(image, factor)
        monkeypatch.setattr(rgb, "STRIP_PIXELS", 400)
        strips = rgb.to_rgb(image, factor)
        monkeypatch.undo()
        assert np.array_equal(np.asarray(strips), np.asarray(whole))


@pytest.mark.parametrize("suffix", ["png", "jpg", "webp", "tiff"])
def test_a_large_image_shrinks_by_a_whole_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    path = tmp_path / f"x.{suffix}"
    Image.fromarray(COLOUR).resize((640, 320)).save(path)
    full = decode(path.read_bytes(), name="x")
    monkeypatch.setattr(decoding, "MAX_DECODED", 640 * 320 // 4)
    small = decode(path.read_bytes(), name="x")
    assert (full.size, small.size) == ((640, 320), (320, 160))
    close = np.abs(np.asarray(full.reduce(2)).astype(int) - np.asarray(small))
    assert close.mean() < 4
    check = check_image(FileImages(tmp_path, Names([path.name])), 0)
    assert (check.width, check.height) == (640, 320)


LACKING = """
import resource, sys
from newkind.data.decoding import decode
from newkind.errors import BrokenImage
content = open(sys.argv[1], "rb").read()
used = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmData:")) * 1024
resource.setrlimit(resource.RLIMIT_DATA, (used + 2**27, resource.RLIM_INFINITY))
try:
    decode(content, name="x")
except BrokenImage:
    sys.exit("called broken")
except MemoryError:
    resource.setrlimit(resource.RLIMIT_DATA, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    decode(content, name="x")
    print("read")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and a limit of memory that the system enforces")
def test_an_image_is_not_called_broken_because_memory_is_lacking(tmp_path: Path) -> None:
    Image.new("RGBA", (8000, 8000), (60, 90, 120, 130)).save(tmp_path / "x.png", compress_level=1)
    command = [sys.executable, "-c", LACKING, str(tmp_path / "x.png")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout == "read\n", done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="the unit of the peak is that of Linux")
def test_memory_is_asked_for_and_not_used() -> None:
    """When memory is lacking, a gigabyte more could be what ends the process."""
    program = "import resource, sys\nfrom newkind.data import decoding\n"
    program += "def peak():\n    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
    program += "before = peak()\ndecoding._lacking('x')\nprint(peak() - before)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert int(done.stdout) < 100_000  # KB


def test_an_image_is_tried_again_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second time it is read; if it fails again although there is memory, it is broken."""
    Image.fromarray(COLOUR).save(tmp_path / "x.png")
    content, remaining, load = (tmp_path / "x.png").read_bytes(), [1], PngImageFile.load

    def lacks(image: PngImageFile) -> object:
        if remaining[0]:
            remaining[0] -= 1
            raise MemoryError
        return load(image)

    monkeypatch.setattr(PngImageFile, "load", lacks)
    assert decode(content, name="x").size == Image.fromarray(COLOUR).size
    remaining[0] = 2
    with raises(BrokenImage, "broken-image"):
        decode(content, name="x")


def test_an_image_that_needs_too_much_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Image.fromarray(COLOUR).resize((640, 320)).save(tmp_path / "x.webp")
    monkeypatch.setattr(decoding, "MAX_MEMORY", decoding.STRIP_BYTES + 1_000_000)
    with raises(BrokenImage, "image-too-large"):
        decode((tmp_path / "x.webp").read_bytes(), name="x")


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open(tmp_path / "x.png", "wb") as file:
        file.truncate(items.MAX_FILE_BYTES + 1)  # a hole, which takes no space
    with raises(BrokenImage, "image-too-large"):
        FileImages(tmp_path, Names(["x.png"])).content(0)


def test_heic(tmp_path: Path) -> None:
    """A photograph of a phone: decoded upright, whatever its suffix says."""
    import pillow_heif

    pixels = np.zeros((32, 64, 3), dtype=np.uint8)
    pixels[:, :32] = 255  # white on the left
    path = tmp_path / "IMG_1.HEIC"
    pillow_heif.from_pillow(Image.fromarray(pixels)).save(path, quality=90)
    for name in ("IMG_1.HEIC", "renamed.jpg"):
        image = decode(path.read_bytes(), name=name)
        assert (image.mode, image.size) == ("RGB", (64, 32))
        assert np.asarray(image)[16, 8].min() > 200
        assert np.asarray(image)[16, 56].max() < 50
    with pytest.raises(BrokenImage):
        decode(path.read_bytes()[:-200], name="cut.heic")


def test_without_the_package_heic_is_skipped_with_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("newkind.data.decoding.find_spec", lambda name: None)
    heic_is_installed.cache_clear()
    try:
        (tmp_path / "a").mkdir()
        (tmp_path / "a" / "1.HEIC").write_bytes(b"x")
        Image.new("RGB", (8, 8)).save(tmp_path / "a" / "2.png")
        (skipped,) = read_folder(tmp_path).skipped
    finally:
        heic_is_installed.cache_clear()
    assert (skipped.name, skipped.code) == ("a/1.HEIC", "unsupported-format")
    assert "newkind[heic]" in skipped.reason
