"""Collections are identified by their content."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np

from newkind.data import from_arrays, open_data
from newkind.experiments.collection_digest import collection_digest


def test_files_count_by_name_and_size(tmp_path: Path, pile: Path, make_image) -> None:
    digest = collection_digest(open_data(str(pile)))
    shutil.copytree(pile, tmp_path / "copy")
    assert collection_digest(open_data(str(tmp_path / "copy"))) == digest
    make_image(tmp_path / "copy" / "loose.bmp", seed=99, size=(30, 20))
    assert collection_digest(open_data(str(tmp_path / "copy"))) != digest


def test_pixels_labels_and_truth_count() -> None:
    pixels = np.random.default_rng(0).integers(0, 255, (6, 8, 8, 3), dtype=np.uint8)
    labels, truth = [0, 0, 1, 1, -1, -1], [0, 0, 1, 1, 2, 2]
    whole = from_arrays(pixels, labels, truth=truth)
    other = pixels.copy()
    other[0, 0, 0, 0] ^= 1
    digests = {
        collection_digest(collection)
        for collection in (
            whole,
            replace(whole, truth=None),
            from_arrays(other, labels, truth=truth),
            from_arrays(pixels, [0, 0, 1, 1, -1, 2], truth=truth),
            from_arrays(pixels, labels, truth=[0, 0, 1, 1, 2, 3]),
        )
    }
    assert len(digests) == 5
    assert collection_digest(replace(whole, origin="elsewhere")) in digests
