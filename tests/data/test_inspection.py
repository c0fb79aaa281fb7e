"""Overview of a collection."""

import json
import shutil
from pathlib import Path

import numpy as np
from PIL import Image

from newkind.data import Inspection, from_features, inspect_collection, read_folder


def look(folder: Path) -> Inspection:
    return inspect_collection(read_folder(folder))


def test_counts_sizes_and_kinds(pile: Path) -> None:
    seen = look(pile)
    assert (seen.n_items, seen.n_labelled, seen.n_unlabelled) == (9, 6, 3)
    assert seen.classes == {"apple": 3, "pear": 3}
    assert seen.formats == {"JPEG": 4, "PNG": 3, "WEBP": 1, "BMP": 1}
    assert seen.sizes is not None
    assert seen.sizes.median == (24, 16)
    assert not seen.obstacles
    assert not seen.duplicates


def test_broken_files_are_named_and_do_not_count(pile: Path) -> None:
    (pile / "apple" / "0.jpg").write_text("no picture")
    (pile / "unlabelled" / "empty.png").write_bytes(b"")
    whole = (pile / "apple" / "1.jpg").read_bytes()
    (pile / "apple" / "1.jpg").write_bytes(whole[:-60])
    seen = look(pile)
    assert {item.name: item.code for item in seen.skipped} == {
        "apple/0.jpg": "not-an-image",
        "unlabelled/empty.png": "not-an-image",
        "apple/1.jpg": "broken-image",
    }
    assert seen.classes["apple"] == 1
    assert seen.single_image_classes == ("apple",)


def test_duplicates_and_conflicts(pile: Path) -> None:
    shutil.copy(pile / "apple" / "0.jpg", pile / "unlabelled" / "copy.jpg")
    shutil.copy(pile / "apple" / "1.jpg", pile / "pear" / "wrong.jpg")
    groups = {group.names: group for group in look(pile).duplicates}
    assert groups["apple/0.jpg", "unlabelled/copy.jpg"].labels == ("apple", None)
    assert not groups["apple/0.jpg", "unlabelled/copy.jpg"].conflict
    assert groups["apple/1.jpg", "pear/wrong.jpg"].conflict
    assert len(groups) == 2


def test_a_picture_on_its_side_counts_as_upright(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 8
    (tmp_path / "a").mkdir()
    Image.new("RGB", (40, 20)).save(tmp_path / "a" / "x.jpg", exif=exif)
    sizes = look(tmp_path).sizes
    assert sizes is not None
    assert sizes.largest == (20, 40)


def test_similar_class_names(pile: Path) -> None:
    for name in ("Apple", "app_le", "a pple", "caf\u00e9", "cafe\u0301"):
        shutil.copytree(pile / "apple", pile / name)
    assert look(pile).similar_names == (("Apple", "a pple", "app_le", "apple"), ("cafe\u0301", "caf\u00e9"))


def test_obstacles(pile: Path, make_image) -> None:
    shutil.rmtree(pile / "pear")
    assert [obstacle.code for obstacle in look(pile).obstacles] == ["single-class"]
    shutil.rmtree(pile / "apple")
    (obstacle,) = look(pile).to_dict()["obstacles"]
    assert obstacle["code"] == "no-labels"
    assert obstacle["what"]
    assert obstacle["fix"]
    make_image(pile / "apple" / "1.jpg", seed=1)
    for name in ("unlabelled", "loose.bmp"):
        (pile / name).rename(pile / "apple" / name)
    assert [obstacle.code for obstacle in look(pile).obstacles] == ["all-labelled", "single-class"]


def test_every_labelled_image_broken_is_an_obstacle(pile: Path) -> None:
    for path in [*pile.glob("apple/*"), *pile.glob("pear/*")]:
        path.write_text("x")
    assert [obstacle.code for obstacle in look(pile).obstacles] == ["no-labels"]


def test_features_have_no_sizes() -> None:
    seen = inspect_collection(from_features(np.eye(6), ["a", "a", "b", "b", None, None]))
    assert seen.n_features == 6
    assert seen.sizes is None
    assert seen.n_unlabelled == 2


def test_to_dict_is_json(pile: Path) -> None:
    shutil.copy(pile / "apple" / "0.jpg", pile / "unlabelled" / "copy.jpg")
    again = json.loads(json.dumps(look(pile).to_dict(), allow_nan=False))
    assert again["duplicates"][0]["conflict"] is False
    assert again["classes"] == {"apple": 3, "pear": 3}
    assert again["ignored"] == {}
