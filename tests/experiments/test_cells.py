"""Cells are named by what decides their result."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from small_features import write_blobs

from error_codes import raises
from newkind.config import BackboneConfig, TrainingConfig
from newkind.data import Collection, open_data
from newkind.effort import Amount
from newkind.errors import RunError, WeightsError
from newkind.experiments.cells import Cell, backbone_key, make_cell, read_result, run_cell, slug
from newkind.experiments.collection_digest import collection_digest
from newkind.pipeline.configure import configure

QUICK = TrainingConfig(epochs=2, batch_size=30)


def cell(collection: Collection, *, training: TrainingConfig = QUICK, method: str = "simgcd", **asked) -> Cell:
    recipe = asked.pop("recipe", "release" if method == "simgcd" else None)
    amount = Amount(epochs=training.epochs, views=asked["backbone"].views if "backbone" in asked else None)
    config = configure(collection, method=method, recipe=recipe, amount=amount, training=training, **asked)
    return make_cell(collection, config, title="t", prefix="blobs", digest=collection_digest(collection))


@pytest.fixture
def collection(blobs: Path) -> Collection:
    return open_data(str(blobs))


def test_what_decides_the_result_is_in_the_name(collection: Collection, tmp_path: Path) -> None:
    usual = cell(collection)
    assert usual.name.startswith("blobs-simgcd-k6-e2-s0-")
    assert usual.method == "simgcd"
    assert usual.seed == 0
    others = [
        cell(collection, training=replace(QUICK, seed=1)),
        cell(collection, training=replace(QUICK, epochs=3)),
        cell(collection, training=replace(QUICK, batch_size=20)),
        cell(collection, method="gcd"),
        cell(collection, method="modern"),
        cell(collection, n_categories=7),
        cell(collection, n_categories="auto"),
        cell(collection, settings={"joint": False}),
        cell(collection, recipe="paper"),
        cell(open_data(str(write_blobs(tmp_path / "others.npz", seed=1)))),
    ]
    assert len({usual.name, *(other.name for other in others)}) == 11
    assert "joint-False" in others[7].name
    assert "kauto" in others[6].name


def test_what_does_not_decide_it_is_not(collection: Collection) -> None:
    usual = cell(collection).name
    assert usual == cell(collection, settings={"entropy_weight": 1, "joint": "true"}, n_categories=6).name
    assert usual == cell(collection, training=replace(QUICK, evaluate_every=1, checkpoint_seconds=0)).name
    # Features need no backbone.
    assert usual == cell(collection, backbone=BackboneConfig(image_size=98, views=3), online=True).name
    few, many = replace(QUICK, epochs=1, batch_size=8), replace(QUICK, epochs=5)
    assert cell(collection, method="kmeans", training=few).name == cell(collection, method="kmeans", training=many).name


def test_on_images_the_backbone_decides(pile: Path) -> None:
    collection = open_data(str(pile))
    configs = [
        BackboneConfig(),
        BackboneConfig(image_size=98),
        BackboneConfig(views=3),
        BackboneConfig(random_weights=True),
    ]
    names = {cell(collection, backbone=config).name for config in configs}
    assert len(names | {cell(collection, online=True).name}) == 5
    assert cell(collection, backbone=BackboneConfig(device="cuda")).name in names


def test_weights_are_identified_by_their_content(tmp_path: Path) -> None:
    for file in ("a.pth", "b.pth"):
        (tmp_path / file).write_bytes(b"same")
    (tmp_path / "c.pth").write_bytes(b"other")
    a, b, c = (backbone_key(BackboneConfig(weights=tmp_path / f"{file}.pth")) for file in "abc")
    assert a == b != c
    with raises(WeightsError, "weights-missing"):
        backbone_key(BackboneConfig(weights=tmp_path / "none.pth"))


def test_a_cell_is_run_once(collection: Collection, tmp_path: Path) -> None:
    one = cell(collection, method="kmeans")
    assert read_result(one, tmp_path) is None
    result = run_cell(one, tmp_path)
    assert result.name == one.name
    assert result.seed == 0
    assert result.score("n_categories") == 6
    assert result.score("all") == result.scores()["accuracy"]["all"]
    assert result.seconds > 0
    with pytest.raises(KeyError):
        result.score("beauty")
    written = (tmp_path / one.name / "result.json").stat().st_mtime_ns
    again = run_cell(one, tmp_path)
    assert again.content == result.content
    assert (tmp_path / one.name / "result.json").stat().st_mtime_ns == written


def test_a_result_of_another_cell_is_not_used(collection: Collection, tmp_path: Path) -> None:
    one = cell(collection, method="kmeans")
    folder = tmp_path / one.name
    folder.mkdir()
    (folder / "result.json").write_text('{"format": 2, "key": {}}')
    with raises(RunError, "other-cell") as caught:
        read_result(one, tmp_path)
    assert caught.value.facts["file"] == folder / "result.json"
    (folder / "result.json").write_text("torn")
    with pytest.raises(RunError):
        read_result(one, tmp_path)


def test_an_unfinished_run_that_cannot_be_resumed_names_its_folder(collection: Collection, tmp_path: Path) -> None:
    one = cell(collection, method="kmeans")
    folder = tmp_path / one.name
    run_cell(one, tmp_path)
    (folder / "result.json").unlink()
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"fingerprint": "of something else"}))
    with raises(RunError, "other-run") as caught:
        run_cell(one, tmp_path)
    assert caught.value.facts["folder"] == folder
    assert str(folder) in caught.value.fix


def test_folder_names_are_plain() -> None:
    assert slug("a b/ü:c--d") == "a-b-c-d"
    assert slug("///") == "data"
    assert len(slug("x" * 500)) == 100
