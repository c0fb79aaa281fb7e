"""What a finished run in Python exchanges with other programs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from newkind.export.corrections import log_left_out, plan_corrections, record_corrections
from newkind.export.formats import export_run
from newkind.export.options import ExportOptions
from newkind.runs.decision import Event
from newkind.runs.run import Run

__all__ = ["Exchange"]


class Exchange:
    """Methods of `newkind.Discovery` that write formats of other programs, and read corrections from them."""

    run: Run

    def export(self, out: str | os.PathLike[str], *, format: str = "csv", **options: Any) -> Path:
        """Write the run, with all decisions, in the format of another program.

        Parameters
        ----------
        out : str or path
            File or folder to create. It must not exist.
        format : str, default="csv"
            `csv`, `folders`, `imagefolder`, `labelstudio`, `coco`, `fiftyone`, `ecotaxa`, `camtrap-dp`, `darwin-core` or
            `onnx`.
        **options : Any
            `mode` ("symlink" or "copy"), `data`, `columns`, `deployments`, `timezone` and `image_url`, as for `newkind
            export`.

        Returns
        -------
        Path
            The file or folder.
        """
        export_run(self.run, format, Path(out), ExportOptions(**options))
        return Path(out)

    def apply(self, file: str | os.PathLike[str], *, format: str, author: str | None = None) -> list[Event]:
        """Record corrections that were made in another program as decisions.

        Parameters
        ----------
        file : str or path
            File that the other program exported.
        format : {"labelstudio", "ecotaxa"}
            Its format.
        author : str, optional
            Who decided. Default: the user who runs this process.

        Returns
        -------
        list of Event
            Approved, moved, renamed and junk images; see `newkind.export.corrections.plan_corrections`.
        """
        plan = plan_corrections(self.run, Path(file), format=format)
        log_left_out(plan)
        return record_corrections(self.run, plan, author=author)
