"""Options that are absurd, or contradict each other: an error with a code, at once."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from command_line import newkind
from PIL import Image
from small_runs import BACKBONE, SmallRuns


@pytest.mark.parametrize(
    ("code", "options"),
    [
        ("out-of-range", "--views 1000000000"),
        ("out-of-range", "--epochs 1000000000000"),
        ("out-of-range", "--batch-size 99999999999999999999"),
        ("out-of-range", "--seed 99999999999999999999999"),
        ("out-of-range", "--seed -1"),
        ("out-of-range", "--image-size 0"),
        ("out-of-range", "--image-size 99999"),
        ("out-of-range", "--learning-rate 1e300"),
        ("out-of-range", "--learning-rate 1e-300 --epochs 1"),
        ("out-of-range", "--views-per-step 1000000"),
        ("out-of-range", "--tuned-blocks 10000000"),
        ("out-of-range", "--evaluate-every 99999999999999"),
        ("out-of-range", "--n-categories 99999999999"),
        ("out-of-range", "--at-most 99999999999999"),
        ("out-of-range", "--set mixture_steps=99999999999"),
        ("out-of-range", "--set mixture_restarts=99999999999"),
        ("out-of-range", "--min-confidence nan"),
        ("too-many-categories", "--n-categories 1000"),
        ("not-a-number", "--n-categories " + "9" * 5000),
        ("conflict", "--overwrite --resume"),
        ("conflict", "--weights w.safetensors"),
        ("conflict", "--effort quick --epochs 5"),
        ("conflict", "--n-categories 5 --at-most 7"),
    ],
    ids=lambda value: value[:40],
)
def test_discover_refuses_absurd_and_contradictory_options(runs: SmallRuns, code: str, options: str) -> None:
    done = newkind(["discover", str(runs.images), "--out", "no-run", "--dry-run", *BACKBONE, *options.split()])
    assert done.code == 2, done.traceback
    assert f"[{code}]" in done.errors
    assert len(done.errors) < 1000
    assert not os.path.exists("no-run")


@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        ("out-of-range", "estimate-k DATA --seed 99999999999999999999999"),
        ("out-of-range", "estimate-k DATA --seed -1"),
        ("out-of-range", "estimate-k DATA --max-categories -5"),
        ("out-of-range", "tune DATA --out no-run --dry-run --folds 99999999999999"),
        ("out-of-range", "bench methods --data DATA --out no-run --dry-run --seeds 99999999999999"),
        ("not-a-number", "bench epsilon --data DATA --out no-run --dry-run --epsilons nan"),
        ("unknown-method", "bench methods --data DATA --out no-run --dry-run --methods ,"),
        ("conflict", "cache prune name --all"),
        ("missing-file", "predict RUN " + "x" * 5000),
    ],
    ids=lambda value: value[:40],
)
def test_other_verbs_refuse_them_too(runs: SmallRuns, code: str, arguments: str) -> None:
    places = {"DATA": str(runs.features), "RUN": str(runs.features_run)}
    done = newkind([places.get(word, word) for word in arguments.split()])
    assert done.code == 2, done.traceback
    assert f"[{code}]" in done.errors


def test_memory_that_is_not_there_is_an_error_without_traceback(
    runs: SmallRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    import newkind.pipeline.dry_run as dry_run

    monkeypatch.setattr(
        dry_run, "announce_data", lambda _: torch.empty(2**50, 2**10)
    )  # a real failure of the allocator
    done = newkind(["discover", str(runs.features), "--out", "no-run", "--dry-run"])
    assert done.code == 2, done.traceback
    assert "[out-of-memory]" in done.errors


def test_many_copies_of_an_image_are_not_all_printed(tmp_path: Path) -> None:
    for kind in ("a", "b"):
        (tmp_path / "data" / kind).mkdir(parents=True)
        Image.new("RGB", (8, 8), "red" if kind == "a" else "blue").save(tmp_path / "data" / kind / "first.png")
    (tmp_path / "data" / "unlabelled").mkdir()
    for i in range(300):
        shutil.copyfile(tmp_path / "data" / "a" / "first.png", tmp_path / "data" / "unlabelled" / f"copy-{i:04d}.png")
    short, whole = newkind(["inspect", str(tmp_path / "data")]), newkind(["inspect", str(tmp_path / "data"), "--all"])
    assert short.code == whole.code == 0
    assert short.output.count("copy-") < 20
    assert whole.output.count("copy-") == 300
    listed = json.loads(newkind(["inspect", str(tmp_path / "data"), "--json"]).output)
    assert len(listed["duplicates"][0]["names"]) == 301


def test_predict_and_inspect_see_the_same_files(runs: SmallRuns, tmp_path: Path) -> None:
    root = tmp_path / "pile"
    for folder in ("a", "b", ".hidden", "__MACOSX", "deep/er"):
        (root / folder).mkdir(parents=True)
        Image.new("RGB", (8, 8), "red").save(root / folder / "1.png")
    Image.new("RGB", (8, 8), "blue").save(root / ".hidden.png")
    (root / "Thumbs.db").touch()
    (root / "photo.heic").touch()
    (root / "loop").symlink_to(root)
    (root / "again").symlink_to(root / "a")
    (root / "a" / "back").symlink_to(root / "a")
    (root / "dangling.png").symlink_to(tmp_path / "nowhere.png")
    (root / "linked.png").symlink_to(root / "a" / "1.png")
    os.mkfifo(root / "pipe.png")
    seen = json.loads(newkind(["inspect", str(root), "--json"]).output)
    expected = {item["name"] for item in seen["skipped"]}
    predicted = newkind(["predict", str(runs.images_run), str(root)])
    assert predicted.code == 0, predicted.errors + predicted.traceback
    lines = [line.split(",") for line in predicted.output.splitlines()[1:]]
    names = {os.path.relpath(line[0], root): line[2] for line in lines}
    assert {name for name, status in names.items() if status == "unreadable"} == expected
    assert len(names) == seen["n_items"] + len(expected)
    assert not any("hidden" in name or "MACOSX" in name for name in names)


def test_predict_fails_if_every_image_does(runs: SmallRuns, tmp_path: Path) -> None:
    for i in range(3):
        (tmp_path / f"{i}.png").write_bytes(b"no image")
    done = newkind(["predict", str(runs.images_run), str(tmp_path), "--out", str(tmp_path / "out.csv")])
    assert done.code == 2
    assert "[nothing-readable]" in done.errors


@pytest.mark.parametrize("scale", [1e-20, 1e30, 1e39])
def test_features_of_an_absurd_scale_are_refused_by_every_verb(runs: SmallRuns, tmp_path: Path, scale: float) -> None:
    with np.load(runs.features) as found:
        np.savez(tmp_path / "x.npz", **dict(found) | {"features": found["features"].astype(np.float64) * scale})
    for arguments in (
        ["discover", "DATA", "--out", str(tmp_path / "run")],
        ["estimate-k", "DATA"],
        ["predict", "RUN", "DATA"],
    ):
        places = {"DATA": str(tmp_path / "x.npz"), "RUN": str(runs.features_run)}
        done = newkind([places.get(word, word) for word in arguments])
        assert done.code == 2, done.traceback
        assert "[feature-scale]" in done.errors
