"""Parts belong to the data that they were computed from: other data with the same names is refused, copies of the data are not."""

import io
import json
import os
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from error_codes import raises
from newkind.config import BackboneConfig
from newkind.data import open_data
from newkind.data.feature_parts import MANIFEST
from newkind.data.file_sample import sampled_digest
from newkind.data.identity import identity_digest, root_of
from newkind.errors import DataError
from newkind.pipeline.compute_features import FeatureParts, compute_features
from newkind.pipeline.predict_parts import open_parts
from newkind.reading import ReadingConfig
from newkind.shard import Shard

CONFIG = BackboneConfig(name="vit_tiny_patch16_224", random_weights=True, image_size=32, device="cpu")
MakeImage = Callable[..., Path]


def picture(seed: int) -> bytes:
    """A picture of noise."""
    content = io.BytesIO()
    Image.fromarray(np.random.default_rng(seed).integers(0, 255, (24, 24, 3), dtype=np.uint8)).save(content, "png")
    return content.getvalue()


def digest(*places: Path) -> str:
    return open_parts(list(places)).digest


def write_tar(path: Path, seed: int) -> Path:
    with tarfile.open(path, "w") as archive:
        for i in range(3):
            member, content = tarfile.TarInfo(f"{i}.png"), picture(seed + i)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def write_parquet(path: Path, seed: int) -> Path:
    """Images without names, each of the same number of bytes."""
    n_bytes = 2 * len(picture(0))
    images = [{"bytes": picture(seed + i).ljust(n_bytes, b"\0"), "path": None} for i in range(3)]
    pq.write_table(pa.table({"image": images}), path)
    return path


def test_features_of_images_that_were_edited_in_place_are_refused(
    pile: Path, tmp_path: Path, make_image: MakeImage
) -> None:
    store = tmp_path / "store"
    assert compute_features(FeatureParts(open_data(pile), CONFIG, store, n_views=0), shard=Shard()).is_complete
    assert FeatureParts(open_data(pile), CONFIG, store, n_views=0).exists(0)
    make_image(pile / "apple" / "0.jpg", seed=5, size=(40, 30))
    with raises(DataError, "other-features") as caught:
        FeatureParts(open_data(pile), CONFIG, store, n_views=0)
    assert caught.value.facts["different"] == ["content"]


def test_machines_with_copies_of_the_data_have_equal_manifests(pile: Path, tmp_path: Path) -> None:
    shutil.copytree(pile, tmp_path / "elsewhere", copy_function=shutil.copyfile)  # with other times
    for name in ("pile", "elsewhere"):
        FeatureParts(open_data(tmp_path / name), CONFIG, tmp_path / f"store of {name}", n_views=0)
    one, two = (json.loads((tmp_path / f"store of {name}" / MANIFEST).read_text()) for name in ("pile", "elsewhere"))
    assert one == two


def test_features_of_an_earlier_version_are_not_continued(pile: Path, tmp_path: Path) -> None:
    """Nobody knows whether they are of the same images."""
    FeatureParts(open_data(pile), CONFIG, tmp_path / "store", n_views=0)
    content = json.loads((tmp_path / "store" / MANIFEST).read_text())
    del content["content"]
    (tmp_path / "store" / MANIFEST).write_text(json.dumps(content))
    with raises(DataError, "other-features"):
        FeatureParts(open_data(pile), CONFIG, tmp_path / "store", n_views=0)


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_new_values_are_other_inputs(tmp_path: Path, suffix: str) -> None:
    rows = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)
    digests = []
    for name, values in (("one", rows), ("same", rows.copy()), ("other", rows + 1e-3), ("wide", rows.reshape(10, 8))):
        path = tmp_path / f"{name}{suffix}"
        if suffix == ".npy":
            np.save(path, values)
        else:
            np.savez(path, features=values, labels=np.full(len(values), -1))
        digests.append(digest(path))
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3


@pytest.mark.parametrize(("write", "suffix"), [(write_parquet, ".parquet"), (write_tar, ".tar")])
def test_images_of_another_archive_with_the_same_names_are_other_inputs(
    tmp_path: Path, write: Callable[[Path, int], Path], suffix: str
) -> None:
    one, other = write(tmp_path / f"one{suffix}", 0), write(tmp_path / f"other{suffix}", 10)
    (tmp_path / "copies").mkdir()
    copy = Path(shutil.copyfile(one, tmp_path / "copies" / one.name))
    assert list(open_data(one).catalog.items.names) == list(open_data(other).catalog.items.names)
    assert digest(one) == digest(copy) != digest(other)


def test_another_column_of_a_parquet_file_has_other_images(tmp_path: Path) -> None:
    columns = {name: [{"bytes": picture(seed), "path": None}] for name, seed in (("image", 0), ("mask", 1))}
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    found = {identity_digest(open_data(tmp_path / "x.parquet", file_column=name).catalog.items) for name in columns}
    assert len(found) == 2


def test_relative_names_of_a_table_start_from_its_folder(tmp_path: Path, make_image: MakeImage) -> None:
    for month in ("march", "april"):
        make_image(tmp_path / month / "a.png", seed=1)
        (tmp_path / month / "photos.csv").write_text("file_name\na.png\n")
        (tmp_path / month / "absolute.csv").write_text(f"file_name\n{tmp_path / 'march' / 'a.png'}\n")
        (tmp_path / month / "boxes.json").write_text(
            json.dumps(
                {"images": [{"file": "a.png", "detections": [{"category": "1", "conf": 0.9, "bbox": [0, 0, 1, 1]}]}]}
            )
        )
    for name, is_same in (("photos.csv", False), ("absolute.csv", True), ("boxes.json", False)):
        assert (digest(tmp_path / "march" / name) == digest(tmp_path / "april" / name)) == is_same
    before = digest(tmp_path / "march" / "photos.csv")
    make_image(tmp_path / "march" / "a.png", seed=1, size=(60, 50))
    assert digest(tmp_path / "march" / "photos.csv") != before


def test_a_list_counts_sizes_and_the_working_directory(
    tmp_path: Path, make_image: MakeImage, monkeypatch: pytest.MonkeyPatch
) -> None:
    for month in ("march", "april"):
        make_image(tmp_path / month / "a.png", seed=1)
    relative, absolute = tmp_path / "relative.txt", tmp_path / "absolute.txt"
    relative.write_text("a.png\nmissing.png\n")
    absolute.write_text(f"{tmp_path / 'march' / 'a.png'}\n")
    found = {}
    for month in ("march", "april"):
        monkeypatch.chdir(tmp_path / month)
        found[month] = (digest(relative), digest(absolute))
    assert found["march"][0] != found["april"][0]
    assert found["march"][1] == found["april"][1]
    make_image(tmp_path / "march" / "a.png", seed=1, size=(60, 50))
    assert digest(absolute) != found["march"][1]


def test_boxes_count_the_images_that_they_are_in(pile: Path, tmp_path: Path, make_image: MakeImage) -> None:
    found = [{"category": "1", "conf": 0.9, "bbox": [0.1, 0.1, 0.8, 0.8]}]
    boxes = tmp_path / "boxes.json"
    boxes.write_text(json.dumps({"images": [{"file": "apple/0.jpg", "detections": found}]}))

    def own() -> str:
        return identity_digest(open_data(pile, boxes=boxes).catalog.items)

    before = own()
    make_image(pile / "loose.bmp", size=(60, 50))  # an image without a box
    assert own() == before
    make_image(pile / "apple" / "0.jpg", size=(60, 50))
    assert own() != before
    assert root_of(open_data(pile, boxes=boxes).catalog.items) == str(pile.resolve())
    assert open_parts([pile], ReadingConfig(boxes=boxes)).digest


def test_a_sample_of_a_large_file(tmp_path: Path) -> None:
    """Its size, beginning and end count; it is not read as a whole."""
    path = tmp_path / "large"
    with open(path, "wb") as file:
        file.truncate(2**40)  # without blocks on the disk
    found = {sampled_digest(path)}
    for place in (0, 2**40 - 1):
        with open(path, "r+b") as file:
            file.seek(place)
            file.write(b"x")
        found.add(sampled_digest(path))
    os.truncate(path, 2**40 + 1)
    assert len(found | {sampled_digest(path), sampled_digest(tmp_path / "nothing")}) == 5
