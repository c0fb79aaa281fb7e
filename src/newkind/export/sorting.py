"""`sort` for every kind of run: image files are linked, copied or moved; boxes and images in archives are copied."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from newkind.export.item_images import open_images
from newkind.export.placing import check_copied, item_file_name, place_images
from newkind.pipeline.sorting import plan_sorting, sorted_targets
from newkind.runs.assignments import read_assignments
from newkind.runs.run import Run
from newkind.runs.run_files import files_of

__all__ = ["SortingPlan", "plan_run", "sort_images"]


@dataclass(frozen=True)
class SortingPlan:
    """Which image goes where.

    Parameters
    ----------
    run : Run
        The run.
    files : list of str
        Names of its items.
    targets : list of Path
        Where they are put.
    mode : {"symlink", "copy", "move"}
        How they are placed.
    origin : str
        Where they are now, for display.
    data : Path, optional
        Folder that contains the images now.
    """

    run: Run
    files: list[str]
    targets: list[Path]
    mode: str
    origin: str
    data: Path | None = None


def plan_run(run: Run, folder: Path, mode: str, *, data: Path | None = None) -> SortingPlan:
    """Plan where the images of a run go, as in `plan_sorting`; errors as from it and from `place_images`."""
    lines = read_assignments(run)
    names = [line.file for line in lines]
    if isinstance(run.config().get("root"), str):
        files = files_of(run, data)
        targets = [item.target for item in plan_sorting(lines, files, folder)]
        return SortingPlan(run, names, targets, mode, str(files.folder), data)
    images = open_images(run, names, data)
    check_copied(images, mode)
    targets = sorted_targets(lines, [item_file_name(row, name, images) for row, name in enumerate(names)], folder)
    return SortingPlan(run, names, targets, mode, str(data or run.config().get("data", "")), data)


def sort_images(plan: SortingPlan, *, advance: Callable[[int], None]) -> int:
    """Place the images that are not in place yet; returns their number. Can be repeated."""
    return place_images(plan.run, plan.files, plan.targets, plan.mode, data=plan.data, advance=advance)
