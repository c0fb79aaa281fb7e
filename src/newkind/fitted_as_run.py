"""What an estimator has after `fit`: a run in a folder of its own, which can be saved, pickled and copied."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from newkind.errors import RunError

if TYPE_CHECKING:
    from newkind.discovery import Discovery

__all__ = ["FittedAsRun"]


class FittedAsRun:
    """Base class of estimators whose result is a run. Its folder is removed with the estimator."""

    _discovery: Discovery

    def save(self, path: str | Path) -> None:
        """Save as a run folder, which `newkind.load` and the command line read too.

        Parameters
        ----------
        path : str or path
            Folder to create.
        """
        found = self._fitted()
        if Path(path).exists():
            raise RunError(
                f"{path} exists already. It was not changed.", fix="Save to another folder.", code="exists", folder=path
            )
        shutil.copytree(found.run.folder, path)

    def __getstate__(self) -> dict[str, Any]:
        """State with the files of the run, whose folder is removed with this object."""
        state: dict[str, Any] = dict(super().__getstate__())  # type: ignore[call-overload]
        found = state.pop("_discovery", None)
        if found is not None:
            paths = [path for path in found.run.folder.rglob("*") if path.is_file()]
            state["_files"] = {str(path.relative_to(found.run.folder)): path.read_bytes() for path in paths}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        files = state.pop("_files", None)
        super().__setstate__(state)  # type: ignore[misc]
        if files is not None:
            from newkind.api import load

            folder = self._own_folder()
            for name, content in files.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(content)
            self._discovery = load(folder)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_discovery")

    def _fitted(self) -> Discovery:
        check_is_fitted(self)
        return self._discovery

    def _own_folder(self) -> Path:
        """A folder that is removed with this estimator."""
        folder = tempfile.mkdtemp(prefix="newkind-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return Path(folder)
