"""Images that are small files and large pictures, and the memory that reading them takes.

    python tests/torture/image_bombs.py            makes the bombs and measures the peak of memory
    python tests/torture/image_bombs.py --quick    the same with fewer and smaller ones

The last line is a JSON object with the peak in MB and the bar.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from figures import State
from PIL import Image

BAR_MB = 2000
CEILING = 4 * 2**30
"""Resident bytes at which a process ends itself, instead of filling the machine's memory.

It is not a limit of the system (RLIMIT_DATA): that counts addresses, also those that glibc keeps per thread for memory that was
freed and returned. Eight threads that had decoded large images could reach it with a fraction of the memory resident.
"""
N_THREADS = 8
"""Threads that read at the same time, as on a machine with eight processors."""


def png(
    width: int, height: int, *, bits: int = 8, colour: int = 2, more: bytes = b"", claims: tuple[int, int] | None = None
) -> bytes:
    """A PNG file of one colour, which may claim another size; `colour` is 0 (grey), 2 (RGB), 3 (palette), 4 (grey and alpha) or 6 (RGBA)."""
    row = b"\0" + b"\x55" * (width * bits * {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour] // 8)
    return (
        b"\x89PNG\r\n\x1a\n"
        + _chunk(b"IHDR", struct.pack(">IIBBBBB", *(claims or (width, height)), bits, colour, 0, 0, 0))
        + more
        + _chunk(b"IDAT", _compressed(row, height))
        + _chunk(b"IEND", b"")
    )


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def _compressed(row: bytes, n_rows: int) -> bytes:
    """A row, many times, compressed without ever being in memory as a whole."""
    packer = zlib.compressobj(9)
    return b"".join(packer.compress(row) for _ in range(n_rows)) + packer.flush()


def tiff(width: int, height: int, *, bits: int = 8, samples: int = 3, sample_format: int = 1) -> bytes:
    """A TIFF file of one colour in a single deflated strip; `sample_format` is 1 for integers, 3 for floats."""
    strip = _compressed(b"\x15" * (width * samples * bits // 8), height)
    n_tags = 11 + (samples == 4)
    beyond = 8 + 2 + 12 * n_tags + 4
    tags = [
        (256, 4, 1, width),
        (257, 4, 1, height),
        (258, 3, samples, beyond if samples > 2 else bits),
        (259, 3, 1, 8),
        (262, 3, 1, 2 if samples > 2 else 1),
        (273, 4, 1, beyond + 8 + 8),
        (277, 3, 1, samples),
        (278, 4, 1, height),
        (279, 4, 1, len(strip)),
        (284, 3, 1, 1),
        *([(338, 3, 1, 2)] if samples == 4 else []),
        (339, 3, samples, beyond + 8 if samples > 2 else sample_format),
    ]
    directory = struct.pack("<H", n_tags) + b"".join(struct.pack("<HHII", *tag) for tag in tags) + struct.pack("<I", 0)
    values = struct.pack("<4H", *[bits] * 4) + struct.pack("<4H", *[sample_format] * 4)
    return b"II*\0" + struct.pack("<I", 8) + directory + values + strip


def gif(width: int, height: int, *, screen: tuple[int, int] | None = None, frames: int = 2) -> bytes:
    """An animated GIF file whose frames may be larger than the screen that it claims."""
    content = BytesIO()
    small = [Image.new("P", (8, 8), i) for i in range(frames)]
    small[0].save(content, "GIF", save_all=True, append_images=small[1:])
    found = bytearray(content.getvalue())
    found[6:10] = struct.pack("<HH", *(screen or (width, height)))
    at = found.index(b"\x2c\0\0\0\0\x08\0\x08\0")
    found[at + 5 : at + 9] = struct.pack("<HH", width, height)
    return bytes(found)


def bmp(width: int, height: int) -> bytes:
    """A run-length encoded BMP file."""
    palette = bytes(1024)
    offset = 14 + 40 + len(palette)
    rows = (b"\xff\x01" * (width // 255) + bytes([width % 255, 1]) + b"\0\0") * height + b"\0\1"
    header = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 8, 1, len(rows), 0, 0, 256, 0)
    return b"BM" + struct.pack("<IHHI", offset + len(rows), 0, 0, offset) + header + palette + rows


def encoded(kind: str, mode: str, width: int, height: int, **options: object) -> bytes:
    """A file that Pillow writes."""
    content = BytesIO()
    Image.new(mode, (width, height), 60 if mode in ("L", "P") else (60, 90, 120, 130)[: len(mode)]).save(
        content, kind, **options
    )
    return content.getvalue()


def bombs(*, quick: bool = False) -> Iterator[tuple[str, bytes]]:
    """Names and contents. Each of them alone is within the limit of pixels, unless its name says `claims`."""
    side = 6000 if quick else 13000
    yield "grey16.png", png(side, side, bits=16, colour=0)
    yield "rgba.png", png(side, side, colour=6)
    yield "claims.png", png(16, 16, claims=(60_000, 60_000))
    yield "frame-claims.gif", gif(60_000, 60_000, screen=(16, 16))
    yield "rgba16-strip.tiff", tiff(side // 2, side // 2, bits=16, samples=4)
    yield "float-strip.tiff", tiff(side // 2, side // 2, bits=32, samples=1, sample_format=3)
    yield "photo.jpg", encoded("JPEG", "L", side, side)
    yield "photo.webp", encoded("WEBP", "RGBA", side // 3, side // 3, lossless=True)
    if quick:
        return
    yield "rgb16.png", png(side, side, bits=16, colour=2)
    yield "grey-alpha16.png", png(side, side, bits=16, colour=4)
    yield "palette.png", png(side, side, colour=3, more=_chunk(b"PLTE", bytes(768)) + _chunk(b"tRNS", bytes(256)))
    yield "thin.png", png(4_000_000, 40, colour=6)
    yield "text.png", png(16, 16, more=_chunk(b"zTXt", b"k\0\0" + zlib.compress(bytes(200_000_000))))
    yield "rgb-strip.tiff", tiff(side, side)
    yield "grey32-strip.tiff", tiff(side, side, bits=32, samples=1)
    yield "claims.tiff", tiff(40_000, 40_000, samples=1)
    yield (
        "animated.gif",
        encoded("GIF", "P", side, side, save_all=True, append_images=[Image.new("P", (side, side), 7)]),
    )
    yield "claims.gif", gif(65_535, 65_535)
    yield "run-length.bmp", bmp(3000, 3000)
    yield "progressive.jpg", encoded("JPEG", "RGB", side, side, progressive=True)
    yield (
        "sideways.jpg",
        encoded(
            "JPEG", "L", side, side, exif=b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0"
        ),
    )
    yield "claims.webp", encoded("WEBP", "RGB", 12000, 12000)


def make_bombs(folder: Path, *, quick: bool = False) -> list[Path]:
    """Write the bombs, in a process of its own: making them takes memory, too."""
    command = [sys.executable, __file__, "--make", str(folder), *(["--quick"] if quick else [])]
    subprocess.run(command, check=True, timeout=1800)
    return sorted(folder.iterdir())


def read_all(folder: Path) -> dict[str, object]:
    """Inspect all files and make views of them, with many threads; how many could be read, and the peak of memory in MB."""
    from newkind.backbone.decoded_views import opened_with_digest
    from newkind.data import Skipped
    from newkind.data.image_check import check_image
    from newkind.data.items import FileImages
    from newkind.data.names import Names
    from newkind.data.prefetch import map_ahead
    from newkind.data.views import ViewRecipe, evaluation_view, resize_for_views

    start = peak()
    images = FileImages(folder, Names(sorted(os.listdir(folder))))
    every, recipe = range(len(images)), ViewRecipe(image_size=28)
    checks = list(map_ahead(lambda i: check_image(images, i), every, n_threads=N_THREADS, ahead=64))

    def view_of(i: int) -> object:
        found = opened_with_digest(images, i, shorter_side=recipe.decoded)
        return found if isinstance(found, Skipped) else evaluation_view(resize_for_views(found[0], recipe), recipe)

    views = list(map_ahead(view_of, every, n_threads=N_THREADS, ahead=64))
    skipped = {item.name: item.code for item in views if isinstance(item, Skipped)}
    found = {images.names[i]: check.error for i, check in enumerate(checks) if check.error}
    assert skipped.keys() == found.keys(), (skipped, found)
    return {"n_files": len(images), "skipped": skipped, "start_mb": start, "peak_mb": peak()}


def _end_at_ceiling() -> None:
    """End this process if too much of its memory is resident."""
    while sys.platform == "linux":
        n_pages = int(Path("/proc/self/statm").read_text().split()[1])
        if n_pages * resource.getpagesize() > CEILING:
            os.write(2, b"the ceiling was reached\n")
            os._exit(3)
        time.sleep(0.01)


def peak() -> float:
    """Largest resident memory of this process so far, in MB.

    On Linux `ru_maxrss` includes the process that started this one, so a large pytest process would be measured instead.
    """
    if sys.platform == "linux":
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) * 1024 / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6


def measure(folder: Path) -> dict[str, object]:
    """`read_all` in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--read", str(folder)], capture_output=True, text=True, check=True, timeout=1800
    )
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Make bombs and measure; or one of the two, as a process of its own."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true")
    options.add_argument("--state", type=Path, help="file that keeps the figures")
    options.add_argument("--make", type=Path, help=argparse.SUPPRESS)
    options.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.make or chosen.read:
        threading.Thread(target=_end_at_ceiling, daemon=True).start()
    if chosen.make:
        for name, content in bombs(quick=chosen.quick):
            (chosen.make / name).write_bytes(content)
    elif chosen.read:
        print(json.dumps(read_all(chosen.read)))
    else:
        with tempfile.TemporaryDirectory() as folder:
            files = make_bombs(Path(folder), quick=chosen.quick)
            print("\n".join(f"{path.name:24} {path.stat().st_size / 1e6:8.2f} MB" for path in files))
            megabytes = sum(path.stat().st_size for path in files) / 1e6
            found = measure(Path(folder))
        print(found)
        state, is_ok = State(chosen.state), float(str(found["peak_mb"])) < BAR_MB
        more = {"megabytes": megabytes, "bar_mb": BAR_MB, "n_threads": N_THREADS, "failures": [] if is_ok else ["peak"]}
        state.of("bombs", "all").update(found | more)
        state.save()
        result = {"name": "image bombs", "value": found["peak_mb"], "bar": BAR_MB, "ok": is_ok, "unit": "MB"}
        print(json.dumps(result))


if __name__ == "__main__":
    main()
