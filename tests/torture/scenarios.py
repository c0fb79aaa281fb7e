"""What is tortured: a command, what it starts from, what must be the same at the end, and what must never be lost."""

import hashlib
import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from PIL import Image
from sessions import ACKNOWLEDGED

from feature_clusters import feature_clusters

__all__ = ["SCENARIOS", "Scenario", "leftovers"]

BACKBONE = ["--backbone", "vit_tiny_patch16_224", "--random-weights", "--image-size", "32"]
TRAINED = ["--recipe", "release", "--epochs", "2", "--batch-size", "32", "--checkpoint-seconds", "0", "--no-report"]
QUICK = ["--method", "kmeans", "--n-categories", "6", "--no-report"]
UNEQUAL = ("environment.json", "report.html", ".lock", "lock")
"""Files with times or versions in them, and empty ones."""
TIMES = re.compile(r'"(?:seconds|features|training|assigning)": [0-9.e+-]+|"date_created": "[0-9T:+-]+"')
Content = dict[str, bytes | str]


@dataclass(frozen=True)
class Scenario:
    """A command and what is expected of it.

    `prepare` fills the folder that it starts from, `before` are commands that are part of that. `compared` is what has to be
    the same at the end, together with what `read` returns; `kept` has to be the same at any moment, and returns an empty
    Counter where nothing can be lost.
    """

    name: str
    arguments: tuple[str, ...]
    prepare: Callable[[Path], None]
    compared: tuple[str, ...]
    before: tuple[tuple[str, ...], ...] = ()
    kept: Callable[[Path, Path], Counter[bytes]] = lambda *_: Counter()
    needs_other_disk: bool = False
    read: Callable[[Path], Content] | None = None

    def content(self, folder: Path, other: Path) -> Content:
        """What has to be the same at the end: files and links by their names, without times."""
        found: Content = {} if self.read is None else self.read(folder)
        for name in self.compared:
            root = other if name == "OTHER" else folder / name
            for path in [root] if root.is_file() else sorted(root.rglob("*")):
                if path.name in UNEQUAL or "report" in path.name:
                    continue
                key = f"{name}/{path.relative_to(root)}"
                if path.is_symlink():
                    found[key] = os.readlink(path)
                elif path.is_file():
                    found[key] = _without_times(path)
        return found

    def digest(self, folder: Path, other: Path) -> str:
        """Digest of everything that is there, except times and empty locks."""
        everything = replace(self, compared=(".", "OTHER"), read=None).content(folder, other)
        return hashlib.sha256(repr(sorted(everything.items())).encode()).hexdigest()


def _without_times(path: Path) -> bytes:
    content = path.read_bytes()
    if path.suffix in (".json", ".jsonl", ".md"):
        return TIMES.sub('"seconds": 0', content.decode()).encode()
    return content


def leftovers(*folders: Path) -> list[str]:
    """Files and folders that no finished command leaves."""
    names = [path for folder in folders for path in folder.rglob("*")]
    return [str(p) for p in names if p.name.endswith(".partial") or p.name in (".next", ".new") or ".tmp" in p.name]


def _features(folder: Path) -> None:
    np.savez(folder / "data.npz", **feature_clusters(6, 3, n_each=16))


def _more_classes(folder: Path) -> None:
    np.savez(folder / "data.npz", **feature_clusters(8, 6, n_each=8))


def _images(folder: Path) -> None:
    """Four kinds of pictures that differ by colour; two are known. Two pictures are links, one of them to the other."""
    rng = np.random.default_rng(0)
    colours = {"red": (200, 30, 30), "green": (30, 200, 30), "blue": (30, 30, 200), "grey": (120, 120, 120)}
    for kind, colour in colours.items():
        for i in range(4):
            place = kind if kind in ("red", "green") and i % 2 else "unlabelled"
            path = folder / "img" / place / f"{kind}{i}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            pixels = np.array(colour) + rng.integers(-25, 25, (40, 44, 3))
            Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(path)
    (folder / "store").mkdir()
    (folder / "img" / "unlabelled" / "blue0.png").rename(folder / "store" / "blue0.png")
    (folder / "img" / "unlabelled" / "blue0.png").symlink_to("../../store/blue0.png")
    (folder / "img" / "unlabelled" / "grey9.png").symlink_to("grey1.png")


def _more_images(folder: Path) -> None:
    """The same pictures, and some more of them that arrive later."""
    _images(folder)
    rng = np.random.default_rng(1)
    (folder / "more").mkdir()
    for i in range(4):
        pixels = np.array((200, 200, 30) if i % 2 else (30, 30, 200)) + rng.integers(-25, 25, (40, 44, 3))
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(folder / "more" / f"{i}.png")


def _pictures(folder: Path, other: Path) -> Counter[bytes]:
    """How often each picture can be found: at its old or its new place, at least once."""
    found = {path.read_bytes() for path in _files(folder / "img", folder / "store", folder / "sorted", other)}
    return Counter(found)


def _files(*folders: Path) -> Iterator[Path]:
    for folder in folders:
        yield from (path for path in folder.rglob("*.png") if path.is_file())


def _copied(folder: Path) -> Path:
    """A copy of the run, because opening a run may finish what a killed process had begun."""
    scratch = folder.parent / "opened"
    shutil.rmtree(scratch, ignore_errors=True)
    shutil.copytree(folder / "run", scratch)
    return scratch


def _acknowledged(folder: Path, _: Path) -> Counter[bytes]:
    """Decisions that were acknowledged are in the log, and the run can be read."""
    from newkind.runs.current_answer import current_answer
    from newkind.runs.decision_log import DecisionLog
    from newkind.runs.run import Run

    noted = folder.parent / ACKNOWLEDGED.name
    run = Run.open(_copied(folder))
    assert DecisionLog(run.folder).last >= int(noted.read_text() if noted.exists() else 0)
    assert len(current_answer(run)) == 96
    return Counter()


def _decided(folder: Path) -> Content:
    """The events without their times, and the answer that they lead to."""
    from newkind.runs.assignments import assignments_csv, category_rows
    from newkind.runs.current_answer import current_answer
    from newkind.runs.decision_log import DecisionLog
    from newkind.runs.run import Run

    run = Run.open(_copied(folder))
    answer = current_answer(run)
    return {
        "events": json.dumps([event.decision.to_json() for event in DecisionLog(run.folder).events()]),
        "assignments": assignments_csv(answer.assignments()),
        "categories": json.dumps(category_rows(answer.list_categories())),
    }


def _answer(folder: Path, other: Path) -> Counter[bytes]:
    """The run can be read at any moment, and its assignments are those of its settings."""
    from newkind.runs.assignments import read_assignments
    from newkind.runs.run import Run

    run = Run.open(_copied(folder))
    assert len(read_assignments(run)) == 96
    assert json.loads(run.categories_file.read_text())
    assert run.config()["assignments"]["rows"] == 96
    return Counter()


def _corrected(folder: Path) -> None:
    """Pictures, and what a person answered about them in Label Studio."""
    _images(folder)
    answers = {"grey1": "Stone", "grey2": "Stone", "blue1": "Sky", "blue2": "red", "red0": "red", "green0": "junk"}
    tasks = [{"newkind_file": f"unlabelled/{name}.png", "answer": answer} for name, answer in answers.items()]
    (folder / "answers.json").write_text(json.dumps(tasks))


def _page(folder: Path) -> Content:
    """Whether the report is there as a whole; it contains times."""
    return {"report": str("</html>" in (folder / "run" / "report.html").read_text()[-100:])}


DISCOVER = ("discover", "data.npz", "--out", "run")
FROM_IMAGES = ("discover", "img", "--out", "run", *BACKBONE, *QUICK, "--effort", "quick")
SORT = ("sort", "run", "--to", "sorted", "--mode")
PREPARED = {"prepare": _images, "before": (FROM_IMAGES,)}
SCENARIOS = [
    Scenario("discover", (*DISCOVER, *TRAINED), _features, ("run",)),
    Scenario(
        "discover, images",
        ("discover", "img", "--out", "run", *BACKBONE, "--views", "2", "--epochs", "1", "--batch-size", "16"),
        _images,
        ("run", "cache"),
    ),
    Scenario(
        "discover, overwrite",
        (*DISCOVER, *TRAINED, "--overwrite", "--seed", "1"),
        _features,
        ("run",),
        before=((*DISCOVER, *QUICK),),
        kept=_answer,
    ),
    Scenario(
        "continue",
        ("discover", "--continue", "run", "--add", "more", "--out", "next", "--no-report"),
        _more_images,
        ("next",),
        before=(FROM_IMAGES, ("rename", "run", "new-01", "Samoyed")),
    ),
    Scenario("cache", ("cache", "img", *BACKBONE, "--views", "2"), _images, ("cache",)),
    Scenario("features", ("features", "img", "--out", "store", "--part-size", "4", *BACKBONE), _images, ("store",)),
    Scenario("report", ("report", "run"), compared=("run",), read=_page, **PREPARED),
    *(
        Scenario(f"export, {kind}", ("export", "run", "--format", kind, "--out", *out), compared=(out[0],), **PREPARED)
        for kind, out in {
            "csv": ("e.csv",),
            "coco": ("e.json",),
            "labelstudio": ("e.json",),
            "darwin-core": ("e.zip",),
            "folders": ("e", "--mode", "copy"),
            "fiftyone": ("e", "--mode", "symlink"),
        }.items()
    ),
    Scenario(
        "export, onnx",
        ("export", "run", "--format", "onnx", "--out", "e.onnx"),
        compared=("e.onnx", "MODEL.md"),
        **PREPARED,
    ),
    Scenario(
        "apply",
        ("apply", "run", "answers.json", "--format", "labelstudio"),
        _corrected,
        ("run/assignments.csv", "run/categories.json"),
        before=(FROM_IMAGES,),
        read=_decided,
    ),
    Scenario(
        "predict, parts",
        ("predict", "run", "img", "--out", "parts/", "--part-size", "4"),
        compared=("parts",),
        **PREPARED,
    ),
    Scenario("predict", ("predict", "run", "img", "--out", "p.csv"), compared=("p.csv",), **PREPARED),
    *(
        Scenario(
            name,
            (session,),
            _features,
            ("run/refits",),
            before=((*DISCOVER, "--effort", "quick", "--no-report"),),
            kept=_acknowledged,
            read=_decided,
        )
        for name, session in {"decide, refit": "session:decide", "review": "session:review"}.items()
    ),
    *(
        Scenario(f"sort, {mode}", (*SORT, mode), compared=("sorted", "img", "store"), kept=_pictures, **PREPARED)
        for mode in ("symlink", "copy", "move")
    ),
    Scenario(
        "sort, move to another disk",
        ("sort", "run", "--to", "OTHER/sorted", "--mode", "move"),
        compared=("OTHER", "img", "store"),
        kept=_pictures,
        needs_other_disk=True,
        **PREPARED,
    ),
    Scenario(
        "tune",
        (
            "tune",
            "data.npz",
            "--out",
            "tuned",
            "--try",
            "head_rate=1,2",
            "--epochs",
            "1",
            "--batch-size",
            "16",
            "--folds",
            "2",
        ),
        _more_classes,
        ("tuned",),
    ),
    Scenario(
        "bench",
        ("bench", "methods", "--data", "data.npz", "--out", "b", "--methods", "kmeans", "--seeds", "1", "--no-figures"),
        _features,
        ("b/runs",),  # tables contain times
    ),
]
