"""Claiming the folder of a run before the work for it begins: it is checked, and locked until the work is done."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from newkind import atomic
from newkind.config import DiscoverConfig, from_json
from newkind.errors import NewkindError, RunError
from newkind.runs.fingerprint import deciding_settings
from newkind.runs.run import ANSWER_LOCK, LOCK, NEW, NEXT, Run

__all__ = ["Claim", "claim_run"]


@dataclass(frozen=True)
class Claim:
    """A run folder that no other process writes.

    Parameters
    ----------
    run : Run
        The run in the folder, or the one to create there.
    overwrite : bool
        Whether a run that is there is replaced.
    """

    run: Run
    overwrite: bool

    def start(self, fingerprint: str) -> Run:
        """Choose where to write, when settings and data are known to be valid.

        Parameters
        ----------
        fingerprint : str
            Fingerprint of settings and data.

        Returns
        -------
        Run
            The unfinished or finished run with this fingerprint, or a new one. A run that replaces another is prepared in a
            folder inside it; the other stays as it is until the new one has an answer.

        Raises
        ------
        RunError
            With the code `other-run` if the folder has another run and `overwrite` is false.
        """
        run, beside = self.run, self.run.beside()
        if not run.config_file.exists():
            return run
        if self.overwrite:
            with atomic.write_errors(run.folder):
                if beside.folder.exists():
                    shutil.rmtree(beside.folder)
                shutil.rmtree(run.folder / "tensorboard", ignore_errors=True)
                atomic.make_folder(beside.folder)
            return beside
        for found in (beside, run):
            if found.config_file.exists() and found.config().get("fingerprint") == fingerprint:
                return found
        raise _other_run(run.folder)


@contextmanager
def claim_run(
    folder: Path, config: DiscoverConfig | None = None, *, overwrite: bool = False, must_exist: bool = False
) -> Iterator[Claim]:
    """Check and lock the folder of a run. Nothing in it is changed; if no run is started, nothing stays behind.

    Parameters
    ----------
    folder : Path
        The folder. Files that are not a run's own are never touched.
    config : DiscoverConfig, optional
        Configuration of the discovery; a run with other settings is refused at once. Default: only fingerprints are compared.
    overwrite : bool, default=False
        Whether a run that is there is replaced.
    must_exist : bool, default=False
        Whether it is an error if there is no run to resume.

    Raises
    ------
    RunError
        With the code `other-run`, `not-a-run`, `nothing-to-resume`, `locked` or `cannot-write`.
    """
    run = Run(folder)
    is_new = not folder.exists()
    _check_kind(run, must_exist=must_exist)
    with atomic.write_errors(folder, fix="Use another `out`."):
        atomic.make_folder(folder)
    try:
        with run.locked():
            if run.config_file.exists():
                run.config()  # raises if this is the config.json of something else
                run.finish_interrupted()
                run.remove_leftovers()
                if not run.beside().config_file.exists():
                    shutil.rmtree(
                        run.beside().folder, ignore_errors=True
                    )  # a process was killed before or after its use
                found = (run.beside(), run)
                if config is not None and not overwrite and not any(_may_have(each, config) for each in found):
                    raise _other_run(folder)
            yield Claim(run, overwrite)
    finally:
        if not run.config_file.exists():
            with suppress(OSError):
                (folder / LOCK).unlink()
                if is_new:
                    folder.rmdir()


def _check_kind(run: Run, *, must_exist: bool) -> None:
    """Raise unless the folder has a run, or can get one."""
    folder = run.folder
    if run.config_file.exists():
        run.config()
    elif folder.exists() and (not folder.is_dir() or any(not _is_leftover(path) for path in folder.iterdir())):
        raise RunError(
            f"{folder} exists and is not a Newkind run. It was not changed.",
            fix="Use another `out`.",
            code="not-a-run",
            folder=folder,
        )
    elif must_exist:
        raise RunError(
            f"There is no run in {folder} to resume.",
            fix="Leave out `resume` to start one.",
            code="nothing-to-resume",
            folder=folder,
        )


def _is_leftover(path: Path) -> bool:
    """Whether a killed process may have left this file or folder."""
    return path.name in (LOCK, ANSWER_LOCK, NEXT, NEW) or path.name.endswith(atomic.PARTIAL)


def _may_have(run: Run, config: DiscoverConfig) -> bool:
    """Whether a run may have these settings; the data, and a batch size that depends on it, are compared later."""
    if not run.config_file.exists():
        return False
    try:
        found = from_json(DiscoverConfig, run.config()["config"])
    except (NewkindError, KeyError, TypeError, ValueError):
        return True  # of another version; its fingerprint decides
    return _without_batch(found) == _without_batch(config)


def _without_batch(config: DiscoverConfig) -> dict[str, Any]:
    settings = deciding_settings(config)
    settings["training"].pop("batch_size")
    return settings


def _other_run(folder: Path) -> RunError:
    return RunError(
        f"{folder} contains a run with other settings or other data.",
        fix="Use another `out`, repeat the command that made it, or use `overwrite`.",
        code="other-run",
        folder=folder,
    )
