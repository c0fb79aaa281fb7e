"""Images to check: each sort is found, and nothing else."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np

from newkind.data import ArrayImages
from newkind.report.contents import read_contents
from newkind.report.images import find_run_images
from newkind.report.questionable import (
    ambiguous_lines,
    find_duplicates,
    find_questionable,
    mislabelled_lines,
    n_ambiguous,
)
from newkind.runs.run import Run


def test_ambiguous_images_are_unlabelled_and_the_most_ambiguous_come_first(run: Run) -> None:
    contents = read_contents(run)
    first = np.where(np.arange(48) % 2, 0.6, 0.52).astype(np.float32)
    second = np.where(np.arange(48) % 2, 0.1, 0.31 + 0.001 * np.arange(48)).astype(np.float32)
    contents = replace(contents, confidence=first, second_confidence=second)
    lines = ambiguous_lines(contents)
    expected = [i for i in range(47, -1, -1) if i % 2 == 0 and contents.is_free[i]]
    assert lines.tolist() == expected
    assert n_ambiguous(contents) == len(expected)
    found = find_questionable(contents, find_run_images(contents))
    assert found.n_ambiguous == len(expected)
    assert found.ambiguous == expected[:36]


def test_a_label_is_questioned_only_if_the_model_is_confident(run: Run) -> None:
    contents = read_contents(run)
    assert mislabelled_lines(contents).tolist() == [0]
    labelled = np.flatnonzero(~contents.is_free)
    first, second = contents.confidence.copy(), contents.second_confidence.copy()
    first[labelled[:4]], second[labelled[:4]] = (0.1, 0.3, 0.02, 0.55), (0.45, 0.6, 0.97, 0.4)
    contents = replace(contents, confidence=first, second_confidence=second)
    # The first is not confident, the last is less confident than the label; of the others the most confident is first.
    assert mislabelled_lines(contents).tolist() == [labelled[2], labelled[1]]


def test_duplicates_are_found_by_their_bytes(run: Run, tmp_path: Path) -> None:
    data = tmp_path / "data"
    contents = read_contents(run)
    assert find_duplicates(contents, find_run_images(contents)) == []
    shutil.copy(data / "img/0-00.png", data / "img/1-00.png")  # labelled, with another label
    shutil.copy(data / "img/3-04.png", data / "img/3-05.png")
    same_size = bytearray((data / "img/2-04.png").read_bytes())
    same_size[-1] ^= 1
    (data / "img/2-05.png").write_bytes(bytes(same_size))
    found = find_duplicates(contents, find_run_images(contents))
    names = [{contents.files[line] for line in duplicates.lines} for duplicates in found]
    assert names == [{"img/0-00.png", "img/1-00.png"}, {"img/3-04.png", "img/3-05.png"}]
    assert [duplicates.labels_differ for duplicates in found] == [True, False]
    assert found[0].categories_differ


def test_duplicates_in_memory_and_in_other_datasets(run: Run) -> None:
    contents = read_contents(run)
    pixels = np.random.default_rng(0).integers(0, 255, (48, 8, 8, 3), dtype=np.uint8)
    pixels[7] = pixels[30]
    images = replace(find_run_images(contents), images=ArrayImages(pixels, contents.files), place=np.arange(48))
    assert [duplicates.lines for duplicates in find_duplicates(contents, images)] == [(7, 30)]
    assert find_duplicates(contents, replace(images, images=None)) == []
