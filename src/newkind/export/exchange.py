"""What a finished run in Python exchanges with other programs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from newkind.export.formats import export_run
from newkind.export.options import ExportOptions
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
            `mode` ("symlink" or "copy"), `data`, `columns`, `timezone` and `image_url`, as for `newkind export`.

        Returns
        -------
        Path
            The file or folder.
        """
        export_run(self.run, format, Path(out), ExportOptions(**options))
        return Path(out)
