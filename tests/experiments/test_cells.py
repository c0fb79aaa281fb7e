"""Cells are known by what decides their result, and data by its content."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from small_features import write_blobs

from newkind.config import BackboneConfig
from newkind.errors import ConfigError, DataError, RunError, WeightsError
from newkind.experiments.cells import make_cell, read_result, slug, trunk_key
from newkind.experiments.paper.dataset import BenchData, open_bench_data
from newkind.experiments.paper.protocol import Protocol, read_epsilons, read_methods


def name(data: BenchData, protocol: Protocol, **more) -> str:
    return make_cell(data, protocol, **({"method": "simgcd", "seed": 0} | more)).name


def test_what_decides_the_result_is_in_the_name(data: BenchData, protocol: Protocol, tmp_path: Path) -> None:
    usual = name(data, protocol)
    assert usual.startswith("blobs-simgcd-k6-e2-s0-")
    names = {
        usual,
        name(data, protocol, seed=1),
        name(data, protocol, method="gcd"),
        name(data, protocol, n_categories=7),
        name(data, protocol, n_categories="auto"),
        name(data, protocol, settings={"joint": False}),
        name(data, replace(protocol, epochs=3)),
        name(data, replace(protocol, batch_size=20)),
        name(data, replace(protocol, recipe="paper")),
        name(open_bench_data(str(write_blobs(tmp_path / "blobs.npz", seed=1))), protocol),
    }
    assert len(names) == 10
    assert "joint-False" in name(data, protocol, settings={"joint": False})


def test_what_does_not_decide_it_is_not(data: BenchData, protocol: Protocol, blobs: Path) -> None:
    usual = name(data, protocol)
    assert usual == name(data, protocol, settings={"entropy_weight": 1, "joint": "true"}, n_categories=6)
    assert usual == name(
        data, replace(protocol, trunk=BackboneConfig(image_size=98, views=3), online=True)
    )  # no images
    moved = shutil.copy(blobs, blobs.with_name("moved.npz"))
    assert usual.split("-")[-1] == name(open_bench_data(str(moved)), protocol).split("-")[-1]
    few, many = replace(protocol, epochs=1, recipe="paper"), replace(protocol, epochs=5)
    assert name(data, few, method="kmeans") == name(data, many, method="kmeans")
    assert name(data, few, method="gcd") == name(data, replace(few, recipe="release"), method="gcd")


def test_on_images_the_trunk_decides(tmp_path: Path, protocol: Protocol, make_image) -> None:
    rows = ["file_name,label,truth"]
    for i, kind in enumerate(["a", "b", "c"] * 4):
        make_image(tmp_path / "pile" / f"{i}.png", seed=i)
        rows.append(f"{i}.png,{kind if i < 6 and kind != 'c' else ''},{kind}")
    (tmp_path / "pile" / "metadata.csv").write_text("\n".join(rows) + "\n")
    data = open_bench_data(str(tmp_path / "pile"))
    trunks = [
        BackboneConfig(),
        BackboneConfig(image_size=98),
        BackboneConfig(views=3),
        BackboneConfig(random_weights=True),
    ]
    names = {name(data, replace(protocol, trunk=trunk)) for trunk in trunks}
    assert len(names | {name(data, replace(protocol, online=True))}) == 5
    assert name(data, protocol) == name(data, replace(protocol, trunk=BackboneConfig(device="cuda")))
    shutil.copytree(tmp_path / "pile", tmp_path / "copy")
    assert open_bench_data(str(tmp_path / "copy")).digest == data.digest
    make_image(tmp_path / "copy" / "0.png", seed=99, size=(30, 20))
    assert open_bench_data(str(tmp_path / "copy")).digest != data.digest


def test_weights_are_known_by_their_content(tmp_path: Path) -> None:
    for file in ("a.pth", "b.pth"):
        (tmp_path / file).write_bytes(b"same")
    (tmp_path / "c.pth").write_bytes(b"other")
    a, b, c = (trunk_key(BackboneConfig(weights=tmp_path / f"{file}.pth")) for file in "abc")
    assert a == b != c
    with pytest.raises(WeightsError, match="cannot be read"):
        trunk_key(BackboneConfig(weights=tmp_path / "none.pth"))


def test_a_result_of_something_else_is_not_taken(data: BenchData, protocol: Protocol, tmp_path: Path) -> None:
    cell = make_cell(data, protocol, method="kmeans", seed=0)
    assert read_result(cell, tmp_path) is None
    folder = tmp_path / cell.name
    folder.mkdir()
    (folder / "result.json").write_text('{"format": 1, "key": {}}')
    with pytest.raises(RunError, match="not that of this cell"):
        read_result(cell, tmp_path)
    (folder / "result.json").write_text("torn")
    with pytest.raises(RunError, match="cannot be read"):
        read_result(cell, tmp_path)


def test_data_without_truth(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="blind carries no truth"):
        open_bench_data(str(write_blobs(tmp_path / "blind.npz", with_truth=False)))


def test_bad_protocols_and_lists() -> None:
    with pytest.raises(ConfigError, match="At least 1 seed"):
        Protocol(n_seeds=0)
    with pytest.raises(ConfigError, match="no method 'magic'"):
        Protocol(methods=("magic",))
    with pytest.raises(ConfigError, match="no recipe"):
        Protocol(recipe="secret")
    with pytest.raises(ConfigError, match="At least 1 epoch"):
        Protocol(epochs=0)
    assert read_methods(" simgcd,gcd, simgcd,") == ("simgcd", "gcd")
    assert read_epsilons("0, 2,2") == (0.0, 2.0)
    for text in ("a", "-1", "nan"):
        with pytest.raises(ConfigError, match="0 or more"):
            read_epsilons(text)
    assert slug("a b/ü:c--d") == "a-b-c-d"
