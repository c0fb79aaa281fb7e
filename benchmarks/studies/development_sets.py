"""Make the sets that have to be made: long-tailed CUB, 20 classes of CUB, a part of Fashion-MNIST, and clip art.

    python benchmarks/studies/development_sets.py OUT --cub FOLDER --fashion FOLDER --clip-art FOLDER

FOLDER of CUB is as for `cub:FOLDER`. FOLDER of Fashion-MNIST has the four idx files as published (Debian: package
dataset-fashion-mnist, /usr/share/datasets/fashion-mnist), that of the clip art the folders of Debian's package openclipart-png
(/usr/share/openclipart/png). Writes OUT/cub-lt/metadata.csv, OUT/cub-20/metadata.csv and OUT/clip-art/metadata.csv, which name the
images where they are, and OUT/fashion with 2,000 images. All rules are seeded: everybody gets the same sets. Nothing was developed with
the clip art, so it shows what Newkind does on data that it has not seen.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from newkind.data import FileImages, open_data

SEED = 0
LARGEST, SMALLEST = 30, 3
N_FASHION = 2000
N_PART = 10
CLIP_ART = (
    *("animals/birds", "animals/bugs", "animals/fish", "animals/mammals", "buildings/homes", "computer/buttons"),
    *("computer/hardware", "education/books", "food/beverages", "food/breads_and_carbs", "food/desserts", "food/fruit"),
    *("food/meats_and_eggs", "office", "people/bodypart", "people/clothing/hats", "people/smilies", "people/stickmen"),
    *("plants/flowers", "recreation/games/cards/ornamental", "recreation/games/cards/white", "recreation/music"),
    *("recreation/sports", "recreation/toys", "shapes/arrows", "shapes/callouts", "shapes/jigsaw"),
    *("signs_and_symbols/clocks", "signs_and_symbols/flags/europe", "signs_and_symbols/flags/semaphore"),
    *("signs_and_symbols/led", "signs_and_symbols/weather", "special/gradients", "special/patterns", "tools"),
    *("tools/weapons", "transportation/aiga-symbols", "transportation/boating", "transportation/roadsigns"),
    "transportation/vehicles",
)
"""Folders of the clip art that show one kind of things each; at least 10 different images are needed."""
FEWEST = 10
GARMENTS = ("t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle-boot")


def long_tailed_cub(folder: Path, out: Path) -> None:
    """Class sizes fall geometrically from 30 to 3 in random class order; classes keep their share of labelled images."""
    collection = open_data(f"cub:{folder}")
    items, truth = collection.catalog.items, collection.truth
    if not isinstance(items, FileImages) or truth is None:
        raise SystemExit(f"{folder} has no CUB-200-2011.")
    rng = np.random.default_rng(SEED)
    n_classes = len(truth.class_names)
    sizes = np.geomspace(LARGEST, SMALLEST, n_classes).round().astype(int)[rng.permutation(n_classes)]
    is_labelled = collection.catalog.is_labelled
    rows = []
    for c, size in enumerate(sizes):
        mine = rng.permutation(np.flatnonzero(truth.labels == c))
        labelled, free = mine[is_labelled[mine]], mine[~is_labelled[mine]]
        size = min(size, len(mine))
        n_labelled = max(round(size * len(labelled) / len(mine)), 1) if len(labelled) else 0
        for i in [*labelled[:n_labelled], *free[: size - n_labelled]]:
            name = truth.class_names[c]
            rows.append((str((items.root / items.names[int(i)]).resolve()), name if is_labelled[i] else "", name))
    _write(out / "cub-lt", rows)


def part_of_cub(folder: Path, out: Path) -> None:
    """Ten known and ten new classes of CUB, with all their images: enough to time 224 pixels."""
    collection = open_data(f"cub:{folder}")
    items, truth = collection.catalog.items, collection.truth
    if not isinstance(items, FileImages) or truth is None:
        raise SystemExit(f"{folder} has no CUB-200-2011.")
    is_labelled = collection.catalog.is_labelled
    known = np.unique(truth.labels[is_labelled])
    new = np.setdiff1d(truth.labels, known)
    rng = np.random.default_rng(SEED)
    chosen = np.concatenate([rng.permutation(known)[:N_PART], rng.permutation(new)[:N_PART]])
    rows = []
    for i in np.flatnonzero(np.isin(truth.labels, chosen)).tolist():
        name = truth.class_names[int(truth.labels[i])]
        rows.append((str((items.root / items.names[i]).resolve()), name if is_labelled[i] else "", name))
    _write(out / "cub-20", rows)


def part_of_fashion(folder: Path, out: Path) -> None:
    """The first 2,000 test images; five random classes are known, and every second image of them is labelled."""
    images = _read(folder / "t10k-images-idx3-ubyte.gz", 16).reshape(-1, 28, 28)[:N_FASHION]
    classes = _read(folder / "t10k-labels-idx1-ubyte.gz", 8)[:N_FASHION]
    known = set(np.random.default_rng(SEED).permutation(len(GARMENTS))[: len(GARMENTS) // 2].tolist())
    target = out / "fashion"
    target.mkdir(parents=True, exist_ok=True)
    seen = dict.fromkeys(range(len(GARMENTS)), 0)
    rows = []
    for i, (image, c) in enumerate(zip(images, classes.tolist(), strict=True)):
        Image.fromarray(image).save(target / f"{i:04d}.png")
        seen[c] += 1
        rows.append((f"{i:04d}.png", GARMENTS[c] if c in known and seen[c] % 2 else "", GARMENTS[c]))
    _write(target, rows)


def clip_art(folder: Path, out: Path) -> None:
    """Different images of the folders `CLIP_ART`; half of them are known classes, and about half of their images labelled."""
    seen: set[bytes] = set()
    images: dict[str, list[Path]] = {}
    for name in CLIP_ART:
        for path in sorted((folder / name).glob("*.png")):
            digest = hashlib.sha256(path.read_bytes()).digest()
            if digest not in seen:
                seen.add(digest)
                images.setdefault(name.replace("/", "-"), []).append(path.resolve())
    images = {name: paths for name, paths in images.items() if len(paths) >= FEWEST}
    rng = np.random.default_rng(SEED)
    known = set(rng.permutation(sorted(images))[: len(images) // 2].tolist())
    rows = []
    for name, paths in images.items():
        is_labelled = rng.random(len(paths)) < (0.5 if name in known else 0)
        rows += [(str(path), name if given else "", name) for path, given in zip(paths, is_labelled, strict=True)]
    _write(out / "clip-art", rows)


def _read(path: Path, header: int) -> NDArray[np.uint8]:
    """Bytes of an idx file after its header."""
    return np.frombuffer(gzip.decompress(path.read_bytes())[header:], dtype=np.uint8)


def _write(folder: Path, rows: Iterable[tuple[str, str, str]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "metadata.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("file_name", "label", "truth"))
        writer.writerows(rows)
    print(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--cub", type=Path)
    parser.add_argument("--fashion", type=Path)
    parser.add_argument("--clip-art", type=Path)
    options = parser.parse_args()
    if options.cub is not None:
        long_tailed_cub(options.cub, options.out)
        part_of_cub(options.cub, options.out)
    if options.fashion is not None:
        part_of_fashion(options.fashion, options.out)
    if options.clip_art is not None:
        clip_art(options.clip_art, options.out)


if __name__ == "__main__":
    main()
