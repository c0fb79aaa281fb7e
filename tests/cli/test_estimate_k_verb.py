"""`estimate-k`, `methods`, and discover with other methods and an unknown number of categories."""

import csv
import http.client
import json
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest

Newkind = Fails = Callable[..., subprocess.CompletedProcess[str]]


def test_estimate_k(newkind: Newkind, fails: Fails, features: Path, tmp_path: Path) -> None:
    done = newkind("estimate-k", features, "--out", tmp_path / "k")
    assert done.returncode == 0, done.stderr
    assert "5 known" in done.stdout
    assert "10" in done.stdout
    found = json.loads((tmp_path / "k" / "estimate-k.json").read_text())
    assert 8 <= found["n_categories"] <= 13
    assert (tmp_path / "k" / "estimate-k.svg").read_text().startswith("<svg")
    fails("exists", "estimate-k", features, "--out", tmp_path / "k")
    for search in ("brent", "binary"):
        published = newkind("estimate-k", features, "--published", "--search", search, "--max-categories", "40")
        assert published.returncode == 0, published.stderr


def test_discover_with_an_unknown_number(newkind: Newkind, features: Path, tmp_path: Path) -> None:
    settings = ["--n-categories", "auto", "--epochs", "20", "--batch-size", "64", "--evaluate-every", "20"]
    done = newkind("discover", features, "--out", tmp_path / "auto", *settings)
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    assert all(line == line.strip() or line.startswith(" ") for line in done.stderr.splitlines())
    rows = json.loads((tmp_path / "auto" / "categories.json").read_text())["categories"]
    assert sum(row["status"] == "known" for row in rows) == 5
    card = json.loads((tmp_path / "auto" / "model.json").read_text())
    estimate = json.loads((tmp_path / "auto" / "estimate-k.json").read_text())["n_categories"]
    asked = json.loads((tmp_path / "auto" / "config.json").read_text())
    assert f" {estimate} " in done.stderr  # the estimate is announced
    assert card["n_categories"] == len(rows) == estimate
    assert asked["n_categories"] == {"asked": "auto", "prototypes": estimate, "used": estimate}
    assert asked["config"]["n_categories"]["number"] is None
    assert (tmp_path / "auto" / "estimate-k.svg").exists()
    before = (tmp_path / "auto" / "assignments.csv").read_bytes()
    again = newkind("discover", features, "--out", tmp_path / "auto", *settings)
    assert "epoch 20 of 20" in again.stderr
    assert (tmp_path / "auto" / "assignments.csv").read_bytes() == before
    predicted = newkind("predict", tmp_path / "auto", features)
    assert predicted.returncode == 0, predicted.stderr
    ours = {row["file"]: row["category"] for row in csv.DictReader(before.decode().splitlines())}
    labelled = {r["file"] for r in csv.DictReader(before.decode().splitlines()) if r["status"] == "labelled"}
    for row in csv.DictReader(predicted.stdout.splitlines()):
        if row["file"] not in labelled:
            assert row["category"] == ours[row["file"]]


@pytest.mark.parametrize("method", ["kmeans", "gcd"])
def test_methods_that_cluster(newkind: Newkind, features: Path, tmp_path: Path, method: str) -> None:
    run = tmp_path / method
    settings = ["--method", method, "--set", "n_init=2", "--epochs", "2", "--batch-size", "64"]
    done = newkind("discover", features, "--out", run, *settings)
    assert done.returncode == 0, done.stderr
    assert json.loads((run / "model.json").read_text())["method"] == method
    assert json.loads((run / "scores.json").read_text())["accuracy"]["all"] > 0.8
    predicted = newkind("predict", run, features)
    assert predicted.returncode == 0, predicted.stderr
    ours = {row["file"]: row for row in csv.DictReader((run / "assignments.csv").read_text().splitlines())}
    for row in csv.DictReader(predicted.stdout.splitlines()):
        if ours[row["file"]]["status"] != "labelled":
            assert row["category"] == ours[row["file"]]["category"]


def test_methods_are_listed_with_their_settings(newkind: Newkind) -> None:
    assert all(name in newkind("methods").stdout for name in ("simgcd", "gcd", "kmeans"))
    assert "supervised_weight" in newkind("methods", "gcd").stdout


def test_shown_settings_are_those_of_a_run(newkind: Newkind) -> None:
    from dataclasses import fields

    from newkind.config import parameter_docs
    from newkind.methods.registry import method_config

    for arguments, config in (
        (["simgcd"], method_config("modern")),
        (["simgcd", "--recipe", "paper"], method_config("simgcd", recipe="paper")),
        (["uno"], method_config("uno")),
    ):
        rows = newkind("methods", *arguments).stdout.splitlines()
        for item in fields(config):
            row = next(row.split() for row in rows if row.split()[:1] == [item.name])
            assert row[1].lower() == str(getattr(config, item.name)).lower()
            assert " ".join(row[2:]).startswith(parameter_docs(type(config))[item.name][:40])


@pytest.mark.parametrize(
    ("extra", "code"),
    [
        (["--method", "magic"], "unknown-method"),
        (["--set", "speed=9"], "unknown-setting"),
        (["--set", "speed"], "not-name-value"),
        (["--set", "entropy_weight=much"], "wrong-type"),
        (["--n-categories", "many"], "not-a-number"),
        (["--n-categories", "4"], "too-few-categories"),
        (["--at-most", "4"], "too-few-categories"),
    ],
)
def test_bad_settings_of_methods(fails: Fails, features: Path, tmp_path: Path, extra: list[str], code: str) -> None:
    fails(code, "discover", features, "--out", tmp_path / "run", *extra)
    assert not (tmp_path / "run").exists()


def test_messages_name_options(newkind: Newkind, tmp_path: Path) -> None:
    few = tmp_path / "few.npz"
    np.savez(few, features=np.random.default_rng(0).normal(size=(32, 6)), labels=[0, 1, -1, -1] * 8)
    estimated = newkind("estimate-k", few)
    assert "--n-categories" in estimated.stdout.split("Next:")[0]
    discovered = newkind("discover", few, "--out", tmp_path / "run", "--method", "kmeans", "--no-report")
    assert "--n-categories" in discovered.stderr
    assert "n_categories" not in estimated.stdout + discovered.stderr


def suggested(done: subprocess.CompletedProcess[str]) -> list[str]:
    """Arguments of the command after `Next:`, as a shell reads them."""
    line = next(line for line in done.stdout.splitlines() if line.startswith("Next:"))
    command = shlex.split(line.removeprefix("Next:"))
    assert command[0] == "newkind"
    return command[1:]


def test_suggested_commands_paste_and_run(newkind: Newkind, shapes: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    data = tmp_path / "my shapes [1]"
    shapes.rename(data)
    small = ["--backbone", "vit_tiny_patch16_224", "--random-weights", "--image-size", "32"]
    estimated = newkind("estimate-k", data, *small)
    assert estimated.returncode == 0, estimated.stderr
    command = suggested(estimated)
    assert command[command.index("--out") + 1] == "run"
    assert {"--image-size", "--random-weights"} <= set(command)
    discovered = newkind(*command, "--epochs", "1", "--views", "2")
    assert discovered.returncode == 0, discovered.stderr
    config = json.loads((tmp_path / "run" / "config.json").read_text())["config"]
    assert (config["backbone"]["image_size"], config["backbone"]["views"]) == (32, 2)
    assert suggested(discovered) == ["review", "run", "--open"]
    command = [sys.executable, "-m", "newkind", "review", "run", "--port", "0"]  # without a browser
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as review:
        assert review.stdout is not None
        address = urlsplit(review.stdout.readline().strip())
        connection = http.client.HTTPConnection(address.netloc, timeout=60)
        connection.request("GET", f"{address.path}?{address.query}")
        assert connection.getresponse().status in (200, 302, 303)
        connection.close()
        review.send_signal(signal.SIGINT)
        assert review.wait(timeout=60) in (0, 130)
    again = suggested(newkind("estimate-k", data, *small))
    assert again[again.index("--out") + 1] == "run-2"  # not the run that exists
