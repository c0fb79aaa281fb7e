"""Options of an export."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from newkind.errors import ConfigError

__all__ = ["EXPORT_MODES", "ExportOptions"]

EXPORT_MODES = ("symlink", "copy")


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """Options of an export; most formats use some of them.

    Parameters
    ----------
    mode : {"symlink", "copy"}, optional
        How images are put into the exported folder. Formats that contain images need it.
    data : Path, optional
        Folder that contains the images now, if they were moved.
    columns : mapping of str to str, default={}
        Metadata columns by their role: `timestamp`, `time`, `latitude`, `longitude` or `deployment`. Default: usual names.
    deployments : Path, optional
        Table with the place of each deployment, and optionally its start and end.
    timezone : str, optional
        Time zone of times that do not name one, such as +02:00 or Z.
    image_url : str, optional
        What Label Studio puts before the name of an image. Default: its address for local files.
    """

    mode: str | None = None
    data: Path | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    deployments: Path | None = None
    timezone: str | None = None
    image_url: str | None = None

    def __post_init__(self) -> None:
        if self.mode is not None and self.mode not in EXPORT_MODES:
            raise ConfigError(
                f"`mode` must be {' or '.join(EXPORT_MODES)}, got {self.mode}.", code="unknown-choice", setting="mode"
            )
        for name in ("data", "deployments"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, Path(getattr(self, name)))
