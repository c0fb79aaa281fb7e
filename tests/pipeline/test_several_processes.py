"""Processes that share out the work of a discovery get the result of one process, with one disk and with several."""

import ctypes
import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from error_codes import raises
from newkind import distributed
from newkind.errors import CacheError, ConfigError, DataError
from processes import TIMEOUT, run_processes

SMALL = {"backbone": "vit_tiny_patch16_224", "random_weights": True, "image_size": 32, "device": "cpu"}
N_IMAGES, N_CONTENTS = 66, 64
"""One file is no image, and one is a copy."""


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four kinds of pictures that differ by colour, two of them known; a copy of one, and a file that is no image."""
    root = tmp_path_factory.mktemp("several") / "pictures"
    rng = np.random.default_rng(0)
    colours = {"red": (200, 30, 30), "green": (30, 200, 30), "blue": (30, 30, 200), "grey": (120, 120, 120)}
    for kind, colour in colours.items():
        for i in range(16):
            folder = root / (kind if kind in ("red", "green") and i % 2 else "unlabelled")
            folder.mkdir(parents=True, exist_ok=True)
            pixels = np.array(colour) + rng.integers(-25, 25, (40, 44, 3))
            Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(folder / f"{kind}{i:02d}.png")
    (root / "unlabelled" / "bad.png").write_text("no image")
    shutil.copy(root / "red" / "red01.png", root / "unlabelled" / "copy.png")
    return root


def discover(out: Path, machines: list[Path], options: dict) -> None:
    """One process of a discovery, on one of the machines, each of which has its own data and cache."""
    from newkind import api
    from newkind.backbone import cache_plan

    cache_plan.FEATURE_GROUP = cache_plan.GROUP = 4  # more groups than processes
    machine = machines[distributed.rank() * len(machines) // distributed.world_size()]
    os.environ["NEWKIND_CACHE"] = str(machine / "cache")
    api.discover(machine / "data", out, report=False, **SMALL, **options)


def machine(folder: Path, pictures: Path) -> Path:
    """A new machine: a folder with its own copy of the data."""
    shutil.copytree(pictures, folder / "data")
    return folder


def result(run: Path) -> list[bytes]:
    """What a discovery has decided."""
    return [(run / name).read_bytes() for name in ("features.npy", "assignments.csv", "categories.json")]


def records(*machines: Path) -> dict[str, dict[bytes, list[bytes]]]:
    """Checksums of all records of each content on all machines together, by view."""
    found: dict[str, dict[bytes, list[bytes]]] = {}
    for place in machines:
        for index in place.glob("cache/tokens/*/index*.bin"):
            content = index.read_bytes()
            view = found.setdefault(index.parent.name.split("-view")[-1][0], {})
            for at in range(0, len(content), 24):
                view.setdefault(content[at : at + 16], []).append(content[at + 16 : at + 20])
    return found


def test_features_and_assignments_are_those_of_one_process(pictures: Path, tmp_path: Path) -> None:
    options = {"effort": "standard", "views": 2}
    one = machine(tmp_path / "one", pictures)
    run_processes(1, discover, tmp_path / "run", [one], options)
    expected = result(tmp_path / "run")
    assert expected[1].count(b"\n") == N_IMAGES  # a header, and all but the one that cannot be read
    features = records(one)
    assert [len(view) for view in features.values()] == [N_CONTENTS] * 3
    assert all(len(copies) == 1 for view in features.values() for copies in view.values())

    shared = machine(tmp_path / "shared", pictures)
    run_processes(2, discover, tmp_path / "run2", [shared], options)
    assert result(tmp_path / "run2") == expected
    assert records(shared) == features  # each image once, and to the bit

    disks = [machine(tmp_path / name, pictures) for name in "ab"]
    run_processes(4, discover, tmp_path / "run4", disks, options)
    assert result(tmp_path / "run4") == expected
    assert records(*disks) == features
    assert all(abs(len(records(disk)["0"]) - N_CONTENTS / 2) <= 4 for disk in disks)

    # One machine comes back with an empty disk, and the machines in another order: the lost half is computed again.
    before = {path: path.read_bytes() for path in disks[1].rglob("*.bin")}
    shutil.rmtree(disks[0] / "cache")
    run_processes(2, discover, tmp_path / "again", disks[::-1], options)
    assert result(tmp_path / "again") == expected
    assert records(*disks) == features
    assert all(path.read_bytes().startswith(content) for path, content in before.items())


READ_ONLY = 'mount --make-rprivate / && mount --bind "$0" "$0" && mount -o remount,bind,ro "$0"'
"""Makes a folder read-only in the mount namespace of this process; root may write in spite of all permissions."""


def read_only(folder: Path) -> None:
    """Make a folder read-only for this process."""
    new_mounts = 0x00020000  # CLONE_NEWNS; Python 3.12 has os.unshare
    assert ctypes.CDLL(None).unshare(new_mounts) == 0
    subprocess.run(["sh", "-c", READ_ONLY, folder], check=True, timeout=TIMEOUT)


def can_mount(folder: Path) -> bool:
    """Whether `read_only` works here."""
    command = ["unshare", "--mount", "sh", "-c", READ_ONLY, str(folder)]
    return bool(shutil.which("unshare")) and not subprocess.run(command, check=False, timeout=TIMEOUT).returncode


def discover_read_only(out: Path, place: Path, options: dict, is_complete: bool) -> None:
    """One process of a discovery with a cache that it may not change."""
    (place / "cache").mkdir(exist_ok=True)
    read_only(place / "cache")
    if is_complete:
        discover(out, [place], options)
        return
    with raises(CacheError, "cannot-write") as caught:
        discover(out, [place], options)
    assert caught.value.facts["path"].is_relative_to(place / "cache")
    assert "NEWKIND_CACHE" in caught.value.fix


def test_a_cache_that_may_not_be_written(pictures: Path, tmp_path: Path) -> None:
    """What is in it is used; all processes name it if something is missing."""
    if not can_mount(tmp_path):
        pytest.skip("A read-only folder needs a mount namespace, which cannot be made here (not root?).")
    options = {"effort": "standard", "views": 2}
    place = machine(tmp_path / "one", pictures)
    run_processes(1, discover, tmp_path / "run", [place], options)
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    for n in (1, 2):
        run_processes(n, discover_read_only, tmp_path / f"run{n}", place, options, True)
        assert result(tmp_path / f"run{n}") == result(tmp_path / "run")
    assert {path: path.read_bytes() for path in place.rglob("*") if path.is_file()} == before
    Image.new("RGB", (40, 40), (1, 2, 3)).save(place / "data" / "unlabelled" / "more.png")
    for n in (1, 2):
        run_processes(n, discover_read_only, tmp_path / f"more{n}", place, options, False)
        run_processes(
            n, discover_read_only, tmp_path / f"empty{n}", machine(tmp_path / f"new{n}", pictures), options, False
        )


def losses(run: Path) -> np.ndarray:
    rows = (run / "metrics.jsonl").read_text().splitlines()
    return np.array([json.loads(row)["loss/total"] for row in rows])


def discover_in_vain(out: Path, machines: list[Path], options: dict) -> None:
    with raises(ConfigError, "too-many-machines"):
        discover(out, machines, options)


def test_training_on_the_tokens_of_several_processes(pictures: Path, tmp_path: Path) -> None:
    """From one disk, the steps are those of one process with the joint batch; from several, each process has its own images."""
    options = {"effort": "thorough", "epochs": 3, "views": 2, "first_answer": False, "n_categories": 4}
    one, both = machine(tmp_path / "one", pictures), machine(tmp_path / "both", pictures)
    run_processes(1, discover, tmp_path / "run", [one], options | {"batch_size": 16})
    run_processes(2, discover, tmp_path / "run2", [both], options | {"batch_size": 8, "global_losses": True})
    np.testing.assert_allclose(losses(tmp_path / "run2"), losses(tmp_path / "run"), rtol=1e-3)

    disks = [machine(tmp_path / name, pictures) for name in "ab"]
    run_processes(2, discover, tmp_path / "apart", disks, options | {"batch_size": 8, "global_losses": True})
    # Other draws from the same distribution.
    np.testing.assert_allclose(losses(tmp_path / "apart").mean(), losses(tmp_path / "run").mean(), rtol=0.2)
    stored = [{index.stat().st_size for index in disk.glob("cache/tokens/*/index*.bin")} - {0} for disk in disks]
    assert all(len(sizes) == 1 for sizes in stored)
    assert sum(size for sizes in stored for size in sizes) == N_CONTENTS * 32  # each image once
    assert (tmp_path / "apart" / "assignments.csv").read_text().count("\n") == N_IMAGES

    # The cache of one machine is complete, so that the other one has nothing to train on.
    later = [one, machine(tmp_path / "later", pictures)]
    run_processes(2, discover_in_vain, tmp_path / "later_run", later, options | {"batch_size": 8})


def open_other_data(folders: list[Path]) -> None:
    """Every process has the data of its own folder."""
    from newkind.backbone.cache_plan import joint_digests
    from newkind.data import read_folder

    with raises(DataError, "other-data"):
        joint_digests(read_folder(folders[distributed.rank()]))


def test_machines_with_different_data(pictures: Path, tmp_path: Path) -> None:
    other = machine(tmp_path / "other", pictures) / "data"
    (other / "red" / "red01.png").rename(other / "red" / "red99.png")
    run_processes(2, open_other_data, [pictures, other])
