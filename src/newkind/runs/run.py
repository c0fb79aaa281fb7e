"""The run folder: every path and artefact in one place, each written as a whole or not at all."""

from __future__ import annotations

import io
import json
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from newkind import __version__
from newkind.errors import RunError

__all__ = ["Run", "to_bytes"]

FORMAT = 1
LOCK = ".lock"


def _is_trace(path: Path) -> bool:
    """What a process that was ended may leave behind."""
    return path.name == LOCK or path.name.endswith(".partial")


def to_bytes(text: str) -> bytes:
    """UTF-8, with file names' own bytes where they are not UTF-8; what no encoding has becomes an escape."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace")


class Run:
    """A folder made by `discover`. Opening one checks that it is one, and of a format that this version reads."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config_file = folder / "config.json"
        self.environment_file = folder / "environment.json"
        self.metrics_file = folder / "metrics.jsonl"
        self.checkpoint_file = folder / "checkpoint.safetensors"
        self.model_file = folder / "model.safetensors"
        self.model_card = folder / "model.json"
        self.assignments_file = folder / "assignments.csv"
        self.categories_file = folder / "categories.json"
        self.scores_file = folder / "scores.json"
        self.features_file = folder / "features.npy"
        self.estimate_file = folder / "estimate-k.json"
        self.estimate_plot = folder / "estimate-k.svg"
        self.report_file = folder / "report.html"
        self._names = {path.name for name, path in vars(self).items() if name not in ("folder",)}

    @classmethod
    def open(cls, folder: Path) -> Run:
        """An existing run."""
        run = cls(folder)
        run.config()
        return run

    @classmethod
    def start(cls, folder: Path, *, fingerprint: str, overwrite: bool, must_exist: bool = False) -> Run:
        """A new folder, or the unfinished run of the same settings in it. Never touches a file that is not a run's own."""
        run = cls(folder)
        if run.config_file.exists():
            found = run.config()  # raises if this is somebody else's config.json
            if overwrite:
                run._remove_artefacts()
            elif found.get("fingerprint") != fingerprint:
                raise RunError(
                    f"{folder} holds a run with other settings or other data.",
                    fix="Take another --out, repeat the command that made it, or start anew with --overwrite.",
                )
        elif folder.exists() and (not folder.is_dir() or any(not _is_trace(path) for path in folder.iterdir())):
            raise RunError(f"{folder} exists and is not a Newkind run.", fix="Take another --out; nothing was touched.")
        elif must_exist:
            raise RunError(f"There is no run in {folder} to resume.", fix="Leave out --resume to start one.")
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(f"{folder} cannot be made ({error.strerror}).") from None
        return run

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps a second process from writing the same run."""
        lock = FileLock(self.folder / LOCK)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise RunError(
                f"Another process is writing {self.folder} right now.", fix="Wait for it, or take another --out."
            ) from None
        with lock:
            yield

    def _remove_artefacts(self) -> None:
        """Only what a run writes: whatever else a person keeps in the folder stays."""
        for path in self.folder.iterdir():
            if path.name in self._names or _is_trace(path):
                path.unlink()
        shutil.rmtree(self.folder / "tensorboard", ignore_errors=True)

    def config(self) -> dict[str, Any]:
        """What `discover` was asked to do."""
        config = self.read_json(self.config_file)
        if "format" not in config or "fingerprint" not in config:
            raise RunError(
                f"{self.config_file} is not that of a Newkind run.", fix="Take another folder; nothing was touched."
            )
        if config["format"] != FORMAT:
            raise RunError(
                f"{self.folder} was made by Newkind {config.get('newkind', '?')}, which writes another format than this version "
                f"({__version__}).",
                fix="Use that version, or run discover again into another folder.",
            )
        return config

    def write_config(self, config: dict[str, Any]) -> None:
        self.write_json(self.config_file, {"format": FORMAT, "newkind": __version__, **config})

    def read_json(self, path: Path) -> dict[str, Any]:
        try:
            content = json.loads(path.read_text())
        except FileNotFoundError:
            raise RunError(f"{self.folder} is not a finished Newkind run: it has no {path.name}.") from None
        except (OSError, ValueError) as error:
            raise RunError(f"{path} cannot be read ({error}).") from None
        if not isinstance(content, dict):
            raise RunError(f"{path} does not hold a JSON object.")
        return content

    def write_json(self, path: Path, content: dict[str, Any]) -> None:
        self.write_text(path, json.dumps(content, indent=2, allow_nan=False) + "\n")

    def write_text(self, path: Path, text: str) -> None:
        """Whole or not at all."""
        self._write(path, to_bytes(text))

    def write_features(self, features: NDArray[np.floating]) -> None:
        """(n, d), a row for each line of assignments.csv, in half precision."""
        content = io.BytesIO()
        np.save(content, np.clip(features, -65504, 65504).astype(np.float16), allow_pickle=False)
        self._write(self.features_file, content.getbuffer())

    def features(self) -> NDArray[np.float16] | None:
        """What `write_features` wrote; None for a run that has none, or a damaged file."""
        try:
            found: NDArray[np.float16] = np.load(self.features_file, allow_pickle=False, mmap_mode="r")
        except (OSError, ValueError, EOFError):
            return None
        return found if found.ndim == 2 and found.dtype == np.float16 else None

    def _write(self, path: Path, content: bytes | memoryview) -> None:
        partial = path.with_name(path.name + ".partial")
        try:
            with open(partial, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
        except OSError as error:
            partial.unlink(missing_ok=True)
            raise RunError(
                f"{path} could not be written ({error.strerror}).", fix="Free some disk and run the same command again."
            ) from None

    def write_environment(self, **more: Any) -> None:
        """Versions and machine, so that a result can be traced."""
        import numpy
        import timm
        import torch

        versions = {
            "python": sys.version.split()[0],
            "torch": torch.__version__,
            "timm": timm.__version__,
            "numpy": numpy.__version__,
        }
        about = {
            "newkind": __version__,
            **versions,
            "platform": platform.platform(),
            "threads": torch.get_num_threads(),
        }
        self.write_json(self.environment_file, about | more)

    def append_metrics(self, row: dict[str, Any]) -> None:
        """One line an epoch."""
        try:
            with open(self.metrics_file, "a", encoding="utf-8") as file:
                file.write(json.dumps(row, allow_nan=False) + "\n")
        except OSError as error:
            raise RunError(
                f"{self.metrics_file} could not be written ({error.strerror}).",
                fix="Free some disk and run the same command again.",
            ) from None

    def metrics(self) -> list[dict[str, Any]]:
        """Every whole line; a torn last one is left out."""
        rows = []
        if self.metrics_file.exists():
            for line in self.metrics_file.read_text().splitlines():
                try:
                    rows.append(json.loads(line))
                except ValueError:
                    break
        return rows

    def cut_metrics(self, finished_epochs: int) -> None:
        """Forgets lines of epochs that will be run again."""
        kept = [row for row in self.metrics() if row["epoch"] <= finished_epochs]
        self.write_text(self.metrics_file, "".join(json.dumps(row) + "\n" for row in kept))
