"""The run folder: where every artefact is, and how it is read and written."""

from __future__ import annotations

import json
import logging
import platform
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import numpy as np
from filelock import Timeout
from numpy.typing import NDArray

from newkind import __version__, atomic
from newkind.backbone.decoded_views import DIGEST_BYTES
from newkind.errors import RunError
from newkind.mapped import write_rows
from newkind.runs.decision_log import DecisionLog
from newkind.runs.format_1 import upgrade_config
from newkind.runs.recorded_array import read_rows, to_half
from newkind.runs.run_schemas import CompleteFile, MetricsRow, RunConfigFile, SettingsFile
from newkind.schema import InvalidJson, check_json, parse_json, read_json_file

__all__ = ["ANSWER_LOCK", "FORMAT", "REFITS", "REPORT_MARK", "Run"]

logger = logging.getLogger(__name__)

FORMAT = 2
LOCK, ANSWER_LOCK = ".lock", ".answer.lock"
NEXT = ".next"
"""Folder of the answer that is being written; its files replace those of the run when all are complete."""
COMPLETE = "complete"
REFITS = "refits"
"""Folder of accepted refits."""
RECORDS = ("assignments", "checksums")
"""Entries of config.json about other files."""
NEW = ".new"
"""Folder of a run that is prepared to replace the one in whose folder it is."""
ROWS = 65_536
"""Features that are converted at a time."""
REPORT_MARK = '<meta name="generator" content="Newkind '
"""A file with this at its beginning is a report."""


@contextmanager
def _unreadable(path: Path) -> Iterator[None]:
    """Raise RunError for a file of a run that exists, but cannot be read or has another content than expected."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (OSError, InvalidJson) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise RunError(f"{path} cannot be read ({reason}).", code="unreadable", file=path) from None


class Run:
    """A folder written by `discover`.

    Parameters
    ----------
    folder : Path
        The folder. It does not have to exist; `Run.open` checks that it is a run.
    replaces : Run, optional
        The run that this one replaces as soon as it has an answer.
    """

    def __init__(self, folder: Path, *, replaces: Run | None = None) -> None:
        self.folder = folder
        self.replaces = replaces
        self.config_file = folder / "config.json"
        self.environment_file = folder / "environment.json"
        self.metrics_file = folder / "metrics.jsonl"
        self.checkpoint_file = folder / "checkpoint.safetensors"
        self.model_file = folder / "model.safetensors"
        self.model_card = folder / "model.json"
        self.assignments_file = folder / "assignments.csv"
        self.categories_file = folder / "categories.json"
        self.model_assignments_file = folder / "model-assignments.csv"
        self.model_categories_file = folder / "model-categories.json"
        self.metadata_file = folder / "metadata.csv"
        self.scores_file = folder / "scores.json"
        self.features_file = folder / "features.npy"
        self.digests_file = folder / "digests.npy"
        self.continued_file = folder / "continued.json"
        self.estimate_file = folder / "estimate-k.json"
        self.estimate_plot = folder / "estimate-k.svg"
        self.report_file = folder / "report.html"
        self._names = {path.name for name, path in vars(self).items() if name not in ("folder", "replaces")}

    @classmethod
    def open(cls, folder: Path) -> Run:
        """Open an existing run.

        Parameters
        ----------
        folder : Path
            A folder written by `discover`.

        Returns
        -------
        Run

        Raises
        ------
        RunError
            If it is not a run, or of a format that this version cannot read.
        """
        run = cls(folder)
        run._check_kinds()
        if any((place / COMPLETE).exists() for place in (folder / NEXT, run.beside().folder)):
            try:
                with run.locked():
                    run.finish_interrupted()
            except RunError as error:
                if error.code != "locked":  # the process that holds the lock is about to finish it
                    raise
        run.config()
        return run

    def _check_kinds(self) -> None:
        """Raise RunError for a pipe or a device in the place of a file, which would be waited for forever."""
        for path in (self.folder / name for name in sorted(self._names)):
            if path.exists() and not path.is_file():
                raise RunError(f"{path} is not a regular file.", code="unreadable", file=path)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from writing this run while the context is open."""
        with atomic.write_errors(self.folder, fix="Use another `out`."):
            lock = atomic.file_lock(self.folder / LOCK)
            try:
                lock.acquire(timeout=0)
            except Timeout:
                raise RunError(
                    f"Another process is writing {self.folder}.",
                    fix="Wait for it, or use another `out`.",
                    code="locked",
                    folder=self.folder,
                ) from None
        with lock:
            yield

    def beside(self) -> Run:
        """Run that is prepared to replace this one, in a folder inside it."""
        return Run(self.folder / NEW, replaces=self)

    def remove_leftovers(self) -> None:
        """Remove what a killed process left half written. Only under the lock."""
        with atomic.write_errors(self.folder):
            for name in self._names:
                atomic.partial_of(self.folder / name).unlink(missing_ok=True)

    @property
    def answer(self) -> Literal["none", "first", "final"]:
        """Whether the results in the folder are missing, a first answer, or final."""
        if not self.assignments_file.exists():
            return "none"
        return "first" if self.config().get("answer") == "first" else "final"

    def next_answer(self) -> Run:
        """Folder for the files of the next answer. What an interrupted process left in it is kept."""
        following = Run(self.folder / NEXT)
        with atomic.write_errors(following.folder):
            if following.folder.is_symlink():
                following.folder.unlink()
            following.folder.mkdir(exist_ok=True)
            (following.folder / COMPLETE).unlink(missing_ok=True)
            following.remove_leftovers()
        return following

    def adopt(self) -> Run:
        """Replace the answer by the complete one in `next_answer`. If the process is killed, opening the run finishes it.

        Returns
        -------
        Run
            The run with the answer: this one, or the one that it replaces and whose folder it takes.
        """
        atomic.write_text(self.folder / NEXT / COMPLETE, "")
        self._finish_adopting()
        if self.replaces is None:
            return self
        names = sorted(name for name in self._names if (self.folder / name).exists())
        atomic.write_json(self.folder / COMPLETE, {"files": names})
        self.replaces._finish_replacing()
        return self.replaces

    def finish_interrupted(self) -> None:
        """Finish the replacement of files that a killed process had begun. Only under the lock."""
        self._finish_adopting()
        self._finish_replacing()

    def _finish_adopting(self) -> None:
        """Move the files of a complete next answer to their place. A report of another answer is removed."""
        following = self.folder / NEXT
        if not (following / COMPLETE).exists():
            return
        with atomic.write_errors(self.folder):
            next_config = following / self.config_file.name
            if next_config.exists() and next_config.read_bytes() != self.config_file.read_bytes():
                self._remove_report()
            self._take(following, self._names)

    def _finish_replacing(self) -> None:
        """Put the files of a complete run beside this one into the place of this run's; others of this run are removed."""
        beside = self.beside().folder
        if not (beside / COMPLETE).exists():
            return
        names = self._names.intersection(self.read_json(beside / COMPLETE, CompleteFile)["files"])
        with atomic.write_errors(self.folder):
            atomic.remove_folder(self.folder / NEXT)
            self._retire_decisions()
            self._remove_report()
            for name in sorted(self._names - names - {self.report_file.name}):
                (self.folder / name).unlink(missing_ok=True)
            self._take(beside, names)

    def _retire_decisions(self) -> None:
        """Keep the log of decisions about a run that is replaced under another name. They do not fit the new run."""
        kept = DecisionLog(self.folder).retire()
        if kept is not None:
            logger.warning(f"The decisions about the run that is overwritten are kept in {kept}; they are not applied.")
        atomic.remove_folder(self.folder / REFITS)

    def _take(self, folder: Path, names: set[str]) -> None:
        """Move files from a folder inside this one to their place, durably, and remove the folder."""
        for name in sorted(names):
            with suppress(FileNotFoundError):  # not part of it, or moved before the process was killed
                (folder / name).replace(self.folder / name)
        atomic.sync_folder(self.folder)
        (folder / COMPLETE).unlink()  # first, so that nothing of it is moved again
        atomic.sync_folder(folder)
        atomic.remove_folder(folder)

    def _remove_report(self) -> None:
        """Remove report.html, unless it is another file of that name."""
        with suppress(FileNotFoundError):
            with open(self.report_file, "rb") as file:
                is_report = REPORT_MARK.encode() in file.read(4096)
            if is_report:
                self.report_file.unlink()

    def config(self) -> dict[str, Any]:
        """Content of config.json, in the current format.

        Returns
        -------
        dict
            `data`, `root`, `fingerprint`, `config` (a DiscoverConfig as JSON), `n_categories` (asked, prototypes, used) and
            `answer` (first or final).
        """
        content = self.read_json(self.config_file)
        if "format" not in content or "fingerprint" not in content:
            raise RunError(
                f"{self.config_file} is not the config of a Newkind run. It was not changed.",
                fix="Use another folder.",
                code="not-a-run",
                folder=self.folder,
            )
        if content["format"] == 1:
            content = upgrade_config(content, self.config_file) | {"format": FORMAT}
        if content["format"] != FORMAT:
            raise RunError(
                f"{self.folder} has format {content['format']}, written by Newkind {content.get('newkind', '?')}. "
                f"This version ({__version__}) reads formats 1 and {FORMAT}.",
                fix="Use that version, or run discover again with another `out`.",
                code="unknown-format",
                folder=self.folder,
            )
        with _unreadable(self.config_file):
            check_json(content, RunConfigFile)
        return content

    def settings(self) -> dict[str, Any]:
        """Entry `config` of config.json; RunError if it lacks settings of the method, the training or the backbone."""
        with _unreadable(self.config_file):
            return dict(check_json(self.config().get("config"), SettingsFile))

    def write_config(self, config: dict[str, Any]) -> None:
        """Write config.json with format and version; records of other files come last, in whatever order they were made."""
        records = {name: config[name] for name in RECORDS if name in config}
        others = {name: value for name, value in config.items() if name not in RECORDS}
        atomic.write_json(self.config_file, {"format": FORMAT, "newkind": __version__, **others, **records})

    def update_config(self, **changes: Any) -> None:
        """Replace some entries of config.json."""
        self.write_config(self.config() | changes)

    def read_json(self, path: Path, schema: Any = dict) -> dict[str, Any]:
        """Content of a JSON file of the run.

        Parameters
        ----------
        path : Path
            The file.
        schema : type, default=dict
            What it must contain, as in `newkind.schema`: any object, or a TypedDict.

        Returns
        -------
        dict

        Raises
        ------
        RunError
            With the code `missing-file` or `unreadable`.
        """
        try:
            with _unreadable(path):
                content: dict[str, Any] = read_json_file(path, schema)
        except FileNotFoundError:
            known = self.folder.is_dir()
            what = f"is not a finished Newkind run: it has no {path.name}" if known else "does not exist"
            raise RunError(f"{self.folder} {what}.", code="missing-file", file=path) from None
        return content

    def write_json(self, path: Path, content: dict[str, Any]) -> None:
        """Write a JSON file of the run atomically."""
        atomic.write_json(path, content)

    def write_text(self, path: Path, text: str) -> None:
        """Write a text file of the run atomically."""
        atomic.write_text(path, text)

    def write_features(self, features: NDArray[np.floating]) -> None:
        """Write features (n, d), one row per line of assignments.csv, in half precision, and their checksum."""
        n, dim = features.shape
        parts = (to_half(features[start : start + ROWS]) for start in range(0, n, ROWS))
        self._record(self.features_file, write_rows(self.features_file, "<f2", (n, dim), parts))

    def features(self) -> NDArray[np.float16] | None:
        """Features (n, d) of the run; None if it has none or the file is damaged."""
        return read_rows(self.features_file, "<f2", self._recorded(self.features_file))

    def write_digests(self, digests: Sequence[bytes]) -> None:
        """Write digests of the images' contents, one row of DIGEST_BYTES bytes per line of assignments.csv."""
        table = np.frombuffer(b"".join(digests), dtype=np.uint8).reshape(len(digests), DIGEST_BYTES)
        self._record(self.digests_file, write_rows(self.digests_file, "|u1", (len(digests), DIGEST_BYTES), [table]))

    def digests(self) -> list[bytes] | None:
        """Digests of the images' contents; None if the run has none, as older runs and runs from features, or it is damaged."""
        found = read_rows(self.digests_file, "|u1", self._recorded(self.digests_file))
        if found is None or found.shape[1] != DIGEST_BYTES:
            return None
        content = found.tobytes()
        return [content[i : i + DIGEST_BYTES] for i in range(0, len(content), DIGEST_BYTES)]

    def _record(self, path: Path, sha256: str) -> None:
        """Put the checksum of a file into config.json, if there is one."""
        if self.config_file.exists():
            self.update_config(checksums=self.config().get("checksums", {}) | {path.name: sha256})

    def _recorded(self, path: Path) -> str | None:
        """Checksum of a file in config.json; None in runs of earlier versions."""
        found: dict[str, str] = self.config().get("checksums", {}) if self.config_file.exists() else {}
        return found.get(path.name)

    def write_environment(self, **more: Any) -> None:
        """Write versions and machine, so that a result can be traced."""
        from importlib.metadata import version

        import torch

        about = {
            "newkind": __version__,
            "python": sys.version.split()[0],
            "torch": torch.__version__,
            "timm": version("timm"),
            "numpy": np.__version__,
            "platform": platform.platform(),
            "threads": torch.get_num_threads(),
        }
        self.write_json(self.environment_file, about | more)

    def append_metrics(self, row: dict[str, Any]) -> None:
        """Append one row, of one epoch, to metrics.jsonl."""
        atomic.append_text(self.metrics_file, json.dumps(row, allow_nan=False) + "\n")

    def metrics(self) -> list[dict[str, Any]]:
        """Complete rows of metrics.jsonl; an incomplete last row is left out."""
        rows: list[dict[str, Any]] = []
        if self.metrics_file.exists():
            for line in self.metrics_file.read_bytes().splitlines():
                try:
                    rows.append(dict(parse_json(line, MetricsRow)))
                except InvalidJson:
                    break
        return rows

    def cut_metrics(self, finished_epochs: int) -> None:
        """Remove the rows of epochs that will be run again."""
        kept = [row for row in self.metrics() if row["epoch"] <= finished_epochs]
        self.write_text(self.metrics_file, "".join(json.dumps(row) + "\n" for row in kept))
