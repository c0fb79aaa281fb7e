"""Kinds of bad input for the command line. Each one writes files into a folder and returns the arguments to run."""

from __future__ import annotations

import io
import shutil
import signal
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import numpy as np
from bad_values import BAD_TEXTS, bad_json, bad_options, bad_table
from command_line import Done, newkind
from hypothesis import strategies as st
from PIL import Image
from small_runs import BACKBONE, SmallRuns

__all__ = ["KINDS", "Attempt", "attempt"]

LONGEST = 120
"""Seconds after which a command is taken to hang."""
JSON_FILES = ("config.json", "categories.json", "model.json", "scores.json", "environment.json", "metrics.jsonl")
CONTINUED = '{"run": "x", "new_rows": [1], "missing": [], "opened": [], "gone": [], "n_moved": 0, "n_copies": 0}'
METRICS = '{"epoch": 1, "seconds": 1.0, "loss/total": 1.0, "learning_rate": 0.1}\n'
BINARY_FILES = ("model.safetensors", "features.npy", "assignments.csv", "decisions.sqlite", "checkpoint.safetensors")
OPTIONS = (
    *(
        "--views",
        "--epochs",
        "--batch-size",
        "--seed",
        "--image-size",
        "--learning-rate",
        "--n-categories",
        "--at-most",
    ),
    *("--min-confidence", "--method", "--recipe", "--set", "--effort", "--device", "--backbone", "--tuned-blocks"),
    *("--dtype", "--views-per-step", "--precision", "--evaluate-every", "--checkpoint-seconds", "--patch-tokens"),
)
Draw = Callable[[st.SearchStrategy], object]


def _name(text: str) -> str:
    """A text as a file name: at most 200 bytes, without slashes."""
    short = text.replace("/", "_").replace("\x00", "_").encode("utf-8", "surrogateescape")[:200]
    return short.decode("utf-8", "surrogateescape") or "_"


def _table(data: st.DataObject, runs: SmallRuns, folder: Path) -> list[str]:
    """A bad table of images, or of true classes."""
    kind = data.draw(st.sampled_from(["csv", "tsv", "jsonl"]))
    files = tuple(f"img/{path.name}" for path in sorted((runs.images / "img").iterdir()))[::4]
    (folder / "img").symlink_to(runs.images / "img")
    path = folder / f"{_name(data.draw(st.sampled_from(BAD_TEXTS)))[:50]}.{kind}"
    path.write_bytes(data.draw(bad_table(files, kind)))
    if data.draw(st.booleans()):
        return ["inspect", str(path), *data.draw(st.sampled_from([[], ["--json"], ["--all"]]))]
    return ["evaluate", str(runs.images_run), "--truth", str(path)]


def _copy(data: st.DataObject, runs: SmallRuns, folder: Path) -> Path:
    """A copy of one of the runs."""
    source = data.draw(st.sampled_from([runs.features_run, runs.images_run]))
    shutil.copytree(source, folder / source.name)
    return folder / source.name


def _use(data: st.DataObject, runs: SmallRuns, run: Path, verbs: tuple[str, ...]) -> list[str]:
    """A command that reads a run."""
    data_of_run = str(runs.images / "img" / "red0.png") if "image" in run.name else str(runs.features)
    commands = {
        "report": ["report", str(run)],
        "evaluate": ["evaluate", str(run), "--truth", str(runs.images / "metadata.csv")],
        "sort": ["sort", str(run), "--to", f"{run}-sorted", "--mode", "copy", "--dry-run"],
        "predict": ["predict", str(run), data_of_run],
        "discover": list(runs.discover(run)),
        "history": ["history", str(run)],
        "rename": ["rename", str(run), "new-01", "Samoyed"],
        "undo": ["undo", str(run)],
        "refit": ["refit", str(run), "--dry-run"],
        "continue": ["discover", "--continue", str(run), "--out", f"{run}-next", "--no-report"],
    }
    return commands[data.draw(st.sampled_from(verbs))]


def _json(data: st.DataObject, runs: SmallRuns, folder: Path) -> list[str]:
    """A run with a bad JSON file."""
    run = _copy(data, runs, folder)
    path = run / data.draw(st.sampled_from((*JSON_FILES, "continued.json")))
    sound = CONTINUED if path.name == "continued.json" else path.read_text() or METRICS
    path.write_bytes(data.draw(bad_json(sound)))
    verbs = ("evaluate", "sort", "predict", "rename", "history", "report", "discover", "refit", "continue")
    return _use(data, runs, run, verbs)


def damaged_bytes(data: st.DataObject, content: bytes) -> bytes:
    """Bytes with a few changes, cut, or with something in between."""
    found = bytearray(content)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, max(len(found) - 1, 0)))
        match data.draw(st.sampled_from(["change", "change", "cut", "insert", "zeros"])):
            case "change" if found:
                found[at] = data.draw(st.integers(0, 255))
            case "cut":
                del found[at:]
            case "insert":
                found[at:at] = data.draw(st.binary(min_size=1, max_size=20))
            case _:
                found[at : at + 16] = bytes(16)
    return bytes(found)


def _binary(data: st.DataObject, runs: SmallRuns, folder: Path) -> list[str]:
    """A run with a damaged table, model or log of decisions."""
    run = _copy(data, runs, folder)
    path = run / data.draw(st.sampled_from(BINARY_FILES))
    if path.name == "decisions.sqlite":
        assert newkind(["rename", str(run), "new-01", "Samoyed"]).code == 0
    elif not path.exists():
        shutil.copyfile(run / "model.safetensors", path)
    path.write_bytes(damaged_bytes(data, path.read_bytes()))
    return _use(data, runs, run, ("predict", "sort", "evaluate", "history", "rename", "undo", "report", "discover"))


def _assignments(data: st.DataObject, runs: SmallRuns, folder: Path) -> list[str]:
    """A run whose assignments.csv has a bad cell."""
    run = _copy(data, runs, folder)
    path = run / "assignments.csv"
    rows = [line.split(",") for line in path.read_text().splitlines()]
    row = rows[data.draw(st.integers(0, len(rows) - 1))]
    row[data.draw(st.integers(0, len(row) - 1))] = data.draw(st.sampled_from(BAD_TEXTS))
    path.write_bytes("\n".join(map(",".join, rows)).encode("utf-8", "surrogateescape"))
    return _use(data, runs, run, ("sort", "evaluate", "rename", "report"))


def _array(data: st.DataObject) -> np.ndarray:
    """An array of any kind and a few elements."""
    kind = data.draw(st.sampled_from(["<f8", "<f4", "<f2", "|u1", "<i8", "<U3", "|b1", "<c8", "|S2", "<M8[s]", ">f8"]))
    shape = data.draw(st.sampled_from([(), (0,), (3,), (3, 2), (3, 0), (0, 2), (3, 8, 8), (3, 8, 8, 3), (3, 1, 1)]))
    values = np.frombuffer(data.draw(st.binary(min_size=4096, max_size=4096)), dtype=np.uint8)
    return np.resize(values[: np.dtype(kind).itemsize * 64].view(kind), shape)


def _npz(data: st.DataObject, runs: SmallRuns, folder: Path) -> list[str]:
    """A bad .npz file: other arrays, or damaged bytes."""
    path = folder / "x.npz"
    if data.draw(st.booleans()):
        path.write_bytes(damaged_bytes(data, runs.features.read_bytes()))
    else:
        with np.load(runs.features) as found:
            held = dict(found)
        for key in data.draw(
            st.lists(st.sampled_from(["features", "images", "labels", "truth", "names", "x"]), min_size=1)
        ):
            if data.draw(st.integers(0, 3)) == 0:
                held.pop(key, None)
            else:
                held[key] = _array(data)
        np.savez(path, **held)
        if data.draw(st.integers(0, 3)) == 0:
            with zipfile.ZipFile(path, "a") as archive:
                archive.writestr(data.draw(st.sampled_from(["labels", "x.npy", "../up.npy", "names.npy"])), b"no array")
    verb = data.draw(st.sampled_from(["inspect", "predict", "estimate-k"]))
    return [verb, *([str(runs.features_run)] if verb == "predict" else []), str(path)]


def _encoded(data: st.DataObject) -> tuple[str, bytes]:
    """A small image of any format and mode."""
    kind = data.draw(st.sampled_from(["PNG", "JPEG", "WEBP", "TIFF", "GIF", "BMP"]))
    modes = {"JPEG": ["RGB", "L", "CMYK"], "WEBP": ["RGB", "RGBA"], "BMP": ["RGB", "L", "P", "1"], "GIF": ["P", "L"]}
    modes["PNG"] = ["RGB", "RGBA", "L", "LA", "P", "1", "I;16"]
    mode = data.draw(st.sampled_from(modes.get(kind, ["RGB", "RGBA", "L", "LA", "P", "1", "I;16", "I"])))
    size = data.draw(st.sampled_from([(1, 1), (4, 4), (9, 30), (33, 8), (400, 4)]))
    content = io.BytesIO()
    Image.new(mode, size).save(content, kind)
    return kind.lower(), content.getvalue()


def _images(data: st.DataObject, runs: SmallRuns, folder: Path) -> list[str]:
    """A folder with damaged images under odd names."""
    for i in range(data.draw(st.integers(1, 4))):
        suffix, content = _encoded(data)
        sub = (
            folder
            / "data"
            / _name(data.draw(st.sampled_from(["a", "b", "unlabelled", "[red]", "\x1b[31mx", ".hidden"])))
        )
        sub.mkdir(parents=True, exist_ok=True)
        name = _name(f"{data.draw(st.sampled_from(BAD_TEXTS))[:40]}{i}.{suffix}")
        damaged = content if data.draw(st.integers(0, 2)) == 0 else damaged_bytes(data, content)
        (sub / name).write_bytes(damaged)
    verb = data.draw(st.sampled_from(["inspect", "predict", "list"]))
    if verb == "list":
        names = [str(path) for path in (folder / "data").rglob("*")] + [data.draw(st.sampled_from(BAD_TEXTS))]
        (folder / "list.txt").write_bytes("\n".join(names).encode("utf-8", "surrogateescape"))
        return ["predict", str(runs.images_run), str(folder / "list.txt")]
    return [verb, *([str(runs.images_run)] if verb == "predict" else []), str(folder / "data")]


def _options(data: st.DataObject, runs: SmallRuns, folder: Path) -> list[str]:
    """Bad values of options."""
    verb = data.draw(st.sampled_from(["discover", "estimate-k", "tune", "bench", "sort", "cache", "methods", "decide"]))
    if verb == "discover":
        images = data.draw(st.booleans())
        given = [str(runs.images), *BACKBONE] if images else [str(runs.features)]
        return ["discover", *given, "--out", str(folder / "run"), "--dry-run", *data.draw(bad_options(OPTIONS))]
    more = {
        "estimate-k": (["estimate-k", str(runs.features)], ("--seed", "--max-categories", "--device")),
        "tune": (
            ["tune", str(runs.features), "--out", str(folder / "t"), "--dry-run"],
            ("--folds", "--try", "--set", "--epochs", "--effort"),
        ),
        "bench": (
            ["bench", "methods", "--data", str(runs.features), "--out", str(folder / "b"), "--dry-run"],
            ("--seeds", "--methods", "--epsilons", "--epochs"),
        ),
        "sort": (
            ["sort", str(runs.images_run), "--to", str(folder / "s"), "--mode", "copy", "--dry-run"],
            ("--mode", "--data"),
        ),
        "cache": (["cache", "prune"], ("--all", "x", "..", ".")),
        "methods": (["methods"], ("--recipe", "simgcd", "kmeans")),
        "decide": (["history", str(runs.features_run)], ("--event", "--author", "--json")),
    }
    arguments, options = more[verb]
    return [*arguments, *data.draw(bad_options(options))]


def _packed(data: st.DataObject, runs: SmallRuns, folder: Path) -> list[str]:
    """A damaged spreadsheet, Parquet file, archive, or file of boxes."""
    from readers import packed_files

    (folder / "img").symlink_to(runs.images / "img")
    name, content = data.draw(st.sampled_from(packed_files(runs)))
    is_json = name.endswith(".json") and data.draw(st.booleans())
    (folder / name).write_bytes(data.draw(bad_json(content.decode())) if is_json else damaged_bytes(data, content))
    if data.draw(st.booleans()):
        return ["inspect", str(folder / name)]
    return ["evaluate", str(runs.images_run), "--truth", str(folder / name)]


def _from_others(data: st.DataObject, runs: SmallRuns, folder: Path) -> list[str]:
    """Damaged corrections, or a damaged exported model."""
    from exchanged_files import exchanged_files

    name, content, arguments = data.draw(st.sampled_from(exchanged_files(runs, folder)))
    path = folder / name
    if name.endswith(".json") and data.draw(st.booleans()):
        path.write_bytes(data.draw(bad_json(content.decode())))
    elif name.endswith(".tsv") and data.draw(st.booleans()):
        rows = [line.split("\t") for line in content.decode().splitlines()]
        row = rows[data.draw(st.integers(0, len(rows) - 1))]
        row[data.draw(st.integers(0, len(row) - 1))] = data.draw(st.sampled_from(BAD_TEXTS))
        path.write_bytes("\n".join(map("\t".join, rows)).encode("utf-8", "surrogateescape"))
    else:
        path.write_bytes(damaged_bytes(data, content))
    return [str(path) if word == "FILE" else word for word in arguments]


KINDS: dict[str, Callable[[st.DataObject, SmallRuns, Path], list[str]]] = {
    "tables": _table,
    "JSON files of a run": _json,
    "binary files of a run": _binary,
    "assignments": _assignments,
    "npz files": _npz,
    "spreadsheets, archives and boxes": _packed,
    "corrections and exported models": _from_others,
    "images": _images,
    "options": _options,
}


@dataclass(frozen=True)
class Attempt:
    """One bad input: the command, what it did, and how long it took."""

    arguments: list[str]
    done: Done
    seconds: float


def attempt(kind: str, data: st.DataObject, runs: SmallRuns, folder: Path) -> Attempt:
    """Draw an input of a kind, in an empty folder, and run its command."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    arguments = KINDS[kind](data, runs, folder)
    start = time.perf_counter()
    with _time_limit():
        done = newkind(arguments)
    return Attempt(arguments, done, time.perf_counter() - start)


@contextmanager
def _time_limit() -> Iterator[None]:
    """Raise TimeoutError in a command that hangs."""

    def stop(_: int, __: FrameType | None) -> None:
        raise TimeoutError(f"the command took more than {LONGEST} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(LONGEST)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
