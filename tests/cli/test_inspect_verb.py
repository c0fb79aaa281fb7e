"""`newkind inspect`, run as a user runs it."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from newkind.cli import main


def newkind(*arguments: str | Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "newkind", *map(os.fspath, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env=os.environ | {"COLUMNS": "100"} | (env or {}),
    )


def test_table(pile: Path) -> None:
    done = newkind("inspect", pile)
    assert done.returncode == 0, done.stderr
    for mentioned in ("apple", "pear", "6 in 2 known classes (3 per class)", "24 x 16", "newkind discover"):
        assert mentioned in done.stdout


def test_what_is_not_used_is_mentioned(pile: Path) -> None:
    (pile / "apple" / "IMG_1.avif").write_bytes(b"x")
    (pile / "apple" / "gone.jpg").symlink_to("nowhere.jpg")
    (pile / "apple" / "notes.txt").write_text("x")
    shown = newkind("inspect", pile).stdout
    for mentioned in ("apple/IMG_1.avif", "AVIF", "apple/gone.jpg", "1 .txt"):
        assert mentioned in shown
    assert "notes.txt" not in shown


@pytest.mark.parametrize("name", ["two words", "it's $HOME", "-x", "line\nfeed"])
def test_the_next_command_can_be_pasted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).mkdir()
    features = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32)
    np.savez(tmp_path / name / "x.npz", features=features, labels=[0, 0, 1, 1] + [-1] * 8)
    (line,) = (s for s in newkind("inspect", "--", f"{name}/x.npz").stdout.splitlines() if s.startswith("Next:"))
    command = line.removeprefix("Next:").replace("newkind", f"{sys.executable} -m newkind", 1) + " --dry-run"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr


def test_the_suggested_run_is_not_inside_the_data(pile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(pile / "apple")
    assert newkind("inspect", "..").stdout.rstrip().endswith("newkind discover .. --out ../../pile-run")


def test_a_benchmark_in_its_official_layout_is_recognised(tmp_path: Path, make_image) -> None:
    root = tmp_path / "my birds"
    make_image(root / "images" / "001.Albatross" / "1.jpg")
    for name in ("images.txt", "image_class_labels.txt", "train_test_split.txt", "classes.txt"):
        (root / name).touch()
    (line,) = (s for s in newkind("inspect", root).stdout.splitlines() if s.startswith("Next:"))
    assert line.endswith(f"newkind inspect 'cub:{root}'")


def test_json_is_all_of_standard_output(pile: Path) -> None:
    (pile / "apple" / "bad.jpg").write_text("x")
    done = newkind("inspect", pile, "--json")
    seen = json.loads(done.stdout)
    assert seen["n_labelled"] == 6
    assert seen["skipped"][0]["name"] == "apple/bad.jpg"


def test_many_classes_are_shortened_unless_all(tmp_path: Path, make_image) -> None:
    for i in range(40):
        make_image(tmp_path / f"class{i:02d}" / "1.png", seed=i, size=(8, 8))
    short, full = newkind("inspect", tmp_path).stdout, newkind("inspect", tmp_path, "--all").stdout
    assert "16 more" in short
    assert "class20" not in short
    assert "class20" in full


def test_names_are_never_read_as_markup_or_escape_codes(pile: Path, make_image) -> None:
    make_image(pile / "[bold]x[/nonsense]" / "1.jpg")
    make_image(pile / "bad\x1b[31mred" / "1.jpg")
    done = newkind("inspect", pile)
    assert "[bold]x[/nonsense]" in done.stdout
    assert "\x1b" not in done.stdout


def test_a_name_that_is_not_utf8_is_shown_with_escapes(pile: Path) -> None:
    folder = os.path.join(os.fsencode(pile), b"caf\xe9")
    os.mkdir(folder)
    os.rename(os.fsencode(pile / "apple" / "0.jpg"), os.path.join(folder, b"\xff.jpg"))
    assert "caf\\xe9" in newkind("inspect", pile).stdout
    assert json.loads(newkind("inspect", pile, "--json").stdout)["classes"]["caf\\xe9"] == 1


@pytest.mark.parametrize(
    ("data", "mentioned"),
    [
        ("/no/such/folder", "/no/such/folder"),
        (".", ".jpg"),
        ("cub:.", "images.txt"),
        ("cub:~nosuch/zz", "images.txt"),
        ("", "NAME:FOLDER"),
        ("bad\udcff\x1b[31m", "bad\\xff\\x1b[31m"),
        ("table.csv", "file_name"),
    ],
)
def test_bad_input_is_an_error_with_exit_code_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: str, mentioned: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    done = newkind("inspect", data)
    assert done.returncode == 2
    assert mentioned in done.stderr
    assert done.stderr.startswith("Error: ")
    assert "\x1b" not in done.stderr
    assert "Traceback" not in done.stderr


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    done = newkind("--debug", "inspect", tmp_path / "nowhere")
    assert "Traceback" in done.stderr


def test_data_that_cannot_be_used_has_exit_code_2(tmp_path: Path, make_image) -> None:
    make_image(tmp_path / "all" / "a" / "1.jpg", seed=1)
    make_image(tmp_path / "all" / "b" / "1.jpg", seed=2)
    done = newkind("inspect", tmp_path / "all")
    assert done.returncode == 2
    assert "'unlabelled'" in done.stdout
    assert "newkind discover" not in done.stdout
    seen = json.loads(newkind("inspect", tmp_path / "all", "--json").stdout)
    assert [obstacle["code"] for obstacle in seen["obstacles"]] == ["all-labelled"]


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_a_console_that_is_not_utf8(pile: Path, make_image, encoding: str) -> None:
    make_image(pile / "鳥" / "1.jpg", seed=30)
    done = newkind("inspect", pile, env={"PYTHONIOENCODING": encoding})
    assert done.returncode == 0, done.stderr
    assert "####" in done.stdout
    assert "\\u9ce5" in done.stdout


@pytest.mark.parametrize("flags", [["inspect"], ["inspect", "--json"], ["--help"]])
def test_output_that_cannot_be_written(pile: Path, flags: list[str]) -> None:
    command = [sys.executable, "-m", "newkind", *flags, *([pile] if "inspect" in flags else [])]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=300)
    assert done.returncode == 2
    assert done.stderr.startswith("Error: ")
    assert os.strerror(errno.ENOSPC) in done.stderr
    read, write = os.pipe()
    os.close(read)  # as `| head` does
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, check=False, timeout=300)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


def test_ctrl_c_prints_one_line(pile: Path, monkeypatch, capfd) -> None:
    def interrupt(_: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("newkind.data.open_data", interrupt)
    monkeypatch.setattr(sys, "argv", ["newkind", "inspect", str(pile)])
    with pytest.raises(SystemExit) as ending:
        main()
    assert ending.value.code == 130
    assert len(capfd.readouterr().err.splitlines()) == 1


def test_warnings_of_pillow_are_not_shown(pile: Path) -> None:
    odd = b"Exif\0\0MM\0\x2a\0\0\0\x08\xff\xff" + b"\x01" * 40
    Image.new("RGB", (16, 16)).save(pile / "apple" / "odd.jpg", exif=odd)
    done = newkind("inspect", pile)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_number_of_features_is_shown(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", features=np.eye(6), labels=[0, 0, 1, 1, -1, -1])
    assert "6 rows of 6 features" in newkind("inspect", tmp_path / "x.npz").stdout
