"""The token cache of data is found again from another working directory, and is not that of other data."""

import json
import shutil
from pathlib import Path

import pytest

from newkind.backbone.cache_plan import CacheKey, plan_cache
from newkind.backbone.loader import Backbone
from newkind.data import Collection, open_data, read_folder
from newkind.experiments.holdout import hold_out

BOX = [{"category": "1", "conf": 0.9, "bbox": [0.1, 0.1, 0.8, 0.8]}]


@pytest.fixture
def boxed(photographs: Path) -> Path:
    """Folder with images of four classes, a table of them, and boxes."""
    names = sorted(str(path.relative_to(photographs)) for path in photographs.rglob("*.png"))
    rows = [f"{name},{'abcd'[i % 4]}" for i, name in enumerate(names)]
    (photographs / "photos.csv").write_text("\n".join(["file_name,label", *rows]) + "\n")
    content = {"images": [{"file": name, "detections": BOX} for name in names]}
    (photographs / "d.json").write_text(json.dumps(content))
    return photographs


def folder_of(collection: Collection, key: CacheKey, backbone: Backbone) -> Path:
    return plan_cache(collection, key, backbone.trunk).folder


def test_boxes_are_found_from_another_folder(
    boxed: Path, key: CacheKey, backbone: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(boxed, boxed.parent / "other")
    found = {}
    for place, data in ((boxed.parent, "photos/"), (boxed, ""), (boxed.parent, "other/")):
        monkeypatch.chdir(place)
        table = open_data(f"{data}photos.csv", boxes=Path(f"{data}d.json"))
        found[data] = [folder_of(each, key, backbone) for each in (table, open_data(f"{data}d.json"))]
        assert folder_of(hold_out(table, fold=0, seed=0), key, backbone) == found[data][0]
    assert found["photos/"] == found[""]
    assert not set(found["other/"]) & set(found[""])


def test_a_folder_of_image_files_has_a_cache_of_its_own(photographs: Path, key: CacheKey, backbone: Backbone) -> None:
    shutil.copytree(photographs, photographs.parent / "other")
    (photographs.parent / "link").symlink_to(photographs)
    one, other, link = (
        folder_of(read_folder(photographs.parent / name), key, backbone) for name in ("photos", "other", "link")
    )
    assert one == link != other
