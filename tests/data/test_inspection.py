import json
import shutil
from pathlib import Path

import numpy as np
from PIL import Image

from newkind.data import from_features, read_folder
from newkind.data.inspection import inspect_collection
from newkind.progress import quiet


def look(folder: Path):
    return inspect_collection(read_folder(folder), advance=quiet)


def test_counts_sizes_and_kinds(pile: Path) -> None:
    seen = look(pile)
    assert (seen.n_items, seen.n_labelled, seen.n_unlabelled) == (9, 6, 3)
    assert seen.classes == {"apple": 3, "pear": 3}
    assert seen.kinds == {"JPEG": 4, "PNG": 3, "WEBP": 1, "BMP": 1}
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
    reasons = {item.name: item.reason for item in seen.skipped}
    assert set(reasons) == {"apple/0.jpg", "unlabelled/empty.png", "apple/1.jpg"}
    assert reasons["apple/0.jpg"].startswith("not an image")
    assert reasons["apple/1.jpg"].startswith("broken")
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


def test_obstacles(pile: Path) -> None:
    shutil.rmtree(pile / "pear")
    assert "only one known class ('apple')" in look(pile).obstacles[0]
    shutil.rmtree(pile / "apple")
    assert "No image is labelled" in look(pile).obstacles[0]


def test_every_labelled_image_broken_is_an_obstacle(pile: Path) -> None:
    for path in [*pile.glob("apple/*"), *pile.glob("pear/*")]:
        path.write_text("x")
    seen = look(pile)
    assert "No image is labelled" in seen.obstacles[0]


def test_features_have_no_pictures_to_look_at() -> None:
    seen = inspect_collection(from_features(np.eye(6), ["a", "a", "b", "b", None, None]), advance=quiet)
    assert seen.n_features == 6
    assert seen.sizes is None
    assert seen.n_unlabelled == 2


def test_to_dict_is_json(pile: Path) -> None:
    shutil.copy(pile / "apple" / "0.jpg", pile / "unlabelled" / "copy.jpg")
    again = json.loads(json.dumps(look(pile).to_dict(), allow_nan=False))
    assert again["duplicates"][0]["conflict"] is False
    assert again["classes"] == {"apple": 3, "pear": 3}
