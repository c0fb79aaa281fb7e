"""The eight datasets, from generated files in their official layouts (the catalog decodes nothing: files are empty)."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from official_layouts import (
    Counts,
    check,
    ids_of,
    touch,
    true_classes,
    write_aircraft,
    write_all,
    write_cars,
    write_cifar,
    write_cub,
    write_herbarium,
)

from error_codes import raises
from newkind.data import ArrayImages, Collection, FileImages, class_split, open_data
from newkind.data.benchmarks import BENCHMARKS, load_benchmark, recognise
from newkind.errors import BenchmarkMissing, DataError

REAL_CUB = Path(__file__).resolve().parents[3] / "shared" / "data" / "CUB_200_2011"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder that is removed after the test: pytest itself would keep tens of thousands of files."""
    path = tmp_path / "data"
    path.mkdir()
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with every dataset in it."""
    root = tmp_path_factory.mktemp("everything")
    write_all(root)
    yield root
    shutil.rmtree(root)


def test_the_facts_are_the_published_ones() -> None:
    assert list(BENCHMARKS) == [
        "cifar10", "cifar100", "imagenet_100", "imagenet_1k", "cub", "stanford_cars", "fgvc_aircraft", "herbarium_19",
    ]  # fmt: skip
    for name, benchmark in BENCHMARKS.items():
        assert benchmark.name == name
        assert benchmark.title
        assert benchmark.source.startswith("https://")
    assert [benchmark.n_classes for benchmark in BENCHMARKS.values()] == [10, 100, 100, 1000, 200, 196, 100, 683]
    assert [benchmark.n_old for benchmark in BENCHMARKS.values()] == [5, 80, 50, 500, 100, 98, 50, 341]


def classes_and_names(collection: Collection) -> list[str]:
    """'class|name' of every image."""
    found = zip(true_classes(collection), collection.catalog.items.names, strict=True)
    return [f"{of_class}|{name}" for of_class, name in found]


def test_cub(folder: Path) -> None:
    training = write_cub(folder / "CUB_200_2011", n_train=5_994)
    collection = load_benchmark("cub", folder)
    check(collection, "cub", Counts("1.5K", "4.5K", 100, 200))
    assert list(collection.catalog.items.names) == training
    assert true_classes(collection) == [name.partition("/")[0] for name in training]
    assert collection.catalog.class_names[:2] == ("151.Bird_150", "071.Bird_70")
    assert isinstance(collection.catalog.items, FileImages)
    assert collection.catalog.items.path(0).is_file()
    assert collection.origin == f"cub in {folder / 'CUB_200_2011'}"


def test_the_real_cub() -> None:
    if not REAL_CUB.is_dir():
        pytest.skip(f"the real CUB-200-2011 is not in {REAL_CUB}")
    collection = load_benchmark("cub", REAL_CUB)
    check(collection, "cub", Counts("1.5K", "4.5K", 100, 200))
    catalog, truth = collection.catalog, collection.truth
    assert truth is not None
    assert len(catalog) == 5_994

    rows = [line.split() for line in (REAL_CUB / "images.txt").read_text().splitlines()]
    ids = [int(line.split()[1]) - 1 for line in (REAL_CUB / "image_class_labels.txt").read_text().splitlines()]
    assert list(catalog.items.names) == [name for _, name in rows]
    old = class_split("cub").old
    of_old_classes = [i for i, class_id in enumerate(ids) if class_id in old]
    np.random.seed(0)  # noqa: NPY002
    drawn = np.random.choice(range(len(of_old_classes)), replace=False, size=(int(0.5 * len(of_old_classes)),))  # noqa: NPY002
    labelled = {of_old_classes[position] for position in drawn}
    assert set(np.flatnonzero(catalog.is_labelled).tolist()) == labelled
    assert all(old[catalog.labels[i]] == ids[i] for i in labelled)
    assert true_classes(collection) == [name.partition("/")[0] for _, name in rows]


def test_stanford_cars(folder: Path) -> None:
    written = write_cars(folder / "stanford_cars", n_train=8_144)
    collection = load_benchmark("stanford_cars", folder)
    check(collection, "stanford_cars", Counts("2.0K", "6.1K", 98, 196))
    assert classes_and_names(collection) == written


def test_fgvc_aircraft(folder: Path) -> None:
    written = write_aircraft(folder / "fgvc-aircraft-2013b", n_train=6_667)
    collection = load_benchmark("fgvc_aircraft", folder)
    check(collection, "fgvc_aircraft", Counts("1.7K", "5.0K", 50, 100))
    assert classes_and_names(collection) == written
    in_order = sorted({row.partition("|")[0] for row in written})
    assert collection.catalog.class_names == tuple(in_order[i] for i in class_split("fgvc_aircraft").old)


def test_herbarium_19(folder: Path) -> None:
    # Old classes hold more images than New ones in the long-tailed original; totals as in the paper's table.
    n_images = {True: np.full(341, 17_740 // 341), False: np.full(342, 16_485 // 342)}
    n_images[True][: 17_740 % 341] += 1
    n_images[False][: 16_485 % 342] += 1
    take, old = {key: iter(value.tolist()) for key, value in n_images.items()}, set(class_split("herbarium_19").old)
    write_herbarium(folder / "herbarium_19", [next(take[c in old]) for c in range(683)])
    (folder / "herbarium_19" / "small-train" / ".cache").mkdir()
    touch(folder / "herbarium_19" / "small-train" / "0", ["notes.txt", "._0.jpg"])
    collection = load_benchmark("herbarium_19", folder)
    check(collection, "herbarium_19", Counts("8.9K", "25.4K", 341, 683))
    names = list(collection.catalog.items.names)
    assert names == sorted(names, key=lambda name: tuple(name.split("/")))
    assert true_classes(collection) == [name.partition("/")[0] for name in names]
    assert names[0] == "0/0.jpg"
    assert len(names) == 34_225


def test_imagenet(everything: Path) -> None:
    touch(everything / "imagenet" / "train" / "not_a_synset", ["a.JPEG"])
    present = sorted(
        path.relative_to(path.parents[1]).as_posix() for path in (everything / "imagenet").rglob("n*.JPEG")
    )
    synsets = sorted({name.partition("/")[0] for name in present})
    for name in ("imagenet_1k", "imagenet_100"):
        collection = load_benchmark(name, everything)
        check(collection, name)
        split = class_split(name)
        wanted = {synsets[c] for c in split.classes}
        expected = [path for path in present if path.partition("/")[0] in wanted]
        assert list(collection.catalog.items.names) == expected
        assert collection.truth is not None
        assert collection.truth.class_names == tuple(synsets[c] for c in split.classes)
        assert true_classes(collection) == [path.partition("/")[0] for path in expected]


@pytest.mark.parametrize(
    ("name", "directory", "n_classes", "counts"),
    [
        ("cifar10", "cifar-10-batches-py", 10, Counts("12.5K", "37.5K", 5, 10)),
        ("cifar100", "cifar-100-python", 100, Counts("20.0K", "30.0K", 80, 100)),
    ],
)
def test_cifar(folder: Path, name: str, directory: str, n_classes: int, counts: Counts) -> None:
    labels = ids_of(50_000, n_classes)
    write_cifar(folder / directory, n_classes, labels)
    collection = load_benchmark(name, folder)
    check(collection, name, counts)
    assert true_classes(collection) == [f"thing {label}" for label in labels]
    assert collection.catalog.items.names[42] == "train/00042"
    assert isinstance(collection.catalog.items, ArrayImages)
    assert collection.catalog.items.pixels.shape == (50_000, 32, 32, 3)


def test_a_dataset_is_found_from_its_folder_or_the_one_around_it(everything: Path) -> None:
    inner = {"cub": "images", "stanford_cars": "cars_train", "fgvc_aircraft": "data", "herbarium_19": "small-train"}
    inner |= {"imagenet_1k": "train", "imagenet_100": "train"}
    for name, benchmark in BENCHMARKS.items():
        own = everything / benchmark.folders[0]
        for root in (everything, own, own / inner.get(name, ".")):
            assert load_benchmark(name, root).origin == f"{name} in {own}"
        assert load_benchmark(name, str(own)).origin == f"{name} in {own}"


def test_recognise(everything: Path) -> None:
    for name, benchmark in BENCHMARKS.items():
        assert recognise(everything / benchmark.folders[0]) == ("imagenet_1k" if name == "imagenet_100" else name)
    assert recognise(everything / "CUB_200_2011" / "images") == "cub"
    assert recognise(str(everything / "imagenet" / "train")) == "imagenet_1k"
    assert recognise(everything / "fgvc-aircraft-2013b" / "data") == "fgvc_aircraft"
    assert recognise(everything) is None
    assert recognise(everything / "nowhere" / "at_all") is None
    assert recognise("\0") is None


def test_a_folder_with_some_synsets_is_not_taken_for_imagenet(folder: Path) -> None:
    touch(folder / "train", [f"n{i:08d}/a.JPEG" for i in range(20)])
    assert recognise(folder) is None


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_missing_dataset_says_where_to_get_it(tmp_path: Path, name: str) -> None:
    with raises(BenchmarkMissing, "benchmark-missing") as caught:
        load_benchmark(name, tmp_path)
    benchmark = BENCHMARKS[name]
    recommended = str(tmp_path / benchmark.folders[0])
    assert caught.value.facts == {"benchmark": name, "folder": recommended}
    assert all(mentioned in caught.value.fix for mentioned in (benchmark.source, recommended, *benchmark.contents))
    with raises(BenchmarkMissing, "benchmark-missing") as caught:
        load_benchmark(name, tmp_path / benchmark.folders[0])
    assert caught.value.facts["folder"] == recommended


@pytest.mark.parametrize("root", ["~nosuch/zz", "x" * 300, "a\0b"])
def test_a_folder_that_cannot_be_is_missing(root: str) -> None:
    with raises(BenchmarkMissing, "benchmark-missing"):
        load_benchmark("cub", root)


def test_an_unknown_benchmark_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with raises(DataError, "unknown-benchmark"):
        load_benchmark("birds", tmp_path)


def test_a_note_mentions_missing_images(folder: Path) -> None:
    write_cub(folder, n_train=399)
    (note,) = load_benchmark("cub", folder).notes
    assert "5,994" in note
    assert "399" in note


def test_only_a_benchmark_carries_the_name_of_one(folder: Path, make_image, monkeypatch: pytest.MonkeyPatch) -> None:
    write_cub(folder / "data" / "CUB_200_2011")
    make_image(folder / "cub" / "wren" / "1.jpg")
    make_image(folder / "cub" / "unlabelled" / "2.jpg")
    monkeypatch.chdir(folder)
    published = open_data("cub:data")
    assert published.benchmark == "cub"
    assert open_data("cub").benchmark == ""  # the user's own folder of that name
    again = open_data(published.location)
    assert (again.benchmark, list(again.catalog.items.names)) == ("cub", list(published.catalog.items.names))
    assert again.location == published.location == f"cub:{folder / 'data' / 'CUB_200_2011'}"
    assert open_data("cub").location == str(folder / "cub")
