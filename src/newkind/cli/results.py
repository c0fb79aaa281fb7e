"""`newkind predict`, `sort` and `evaluate`: what can be done with a finished run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["evaluate", "predict", "sort"]


def predict(
    run: Annotated[Path, typer.Argument(help="A run folder made by discover.")],
    images: Annotated[
        list[Path], typer.Argument(help="Images, folders, .txt lists of images, or an .npz with features.")
    ],
    out: Annotated[Path | None, typer.Option(help="The CSV file to write [default: standard output].")] = None,
    weights: Annotated[Path | None, typer.Option(help="The backbone's weights file, if it has moved.")] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda, mps or auto.")] = "auto",
) -> None:
    """Sort images that the run has not seen. `novelty` is the probability of all new categories together."""
    import sys

    from rich.console import Console

    from newkind.data import open_data
    from newkind.errors import RunError
    from newkind.pipeline.predict import as_images, images_at, sort_images
    from newkind.progress import progress_bar
    from newkind.runs.assignments import assignments_csv
    from newkind.runs.model_io import load_model
    from newkind.runs.run import Run, to_bytes

    console = Console(stderr=True, highlight=False)
    opened = Run.open(run)
    if out is not None and out.exists():
        raise RunError(f"{out} exists already.", fix="Take another --out; nothing was touched.")
    pictures = as_images(open_data(images[0])) if images[0].suffix == ".npz" else images_at(images)
    model = load_model(opened, device=device, weights=weights)
    with progress_bar("Sorting", len(pictures), show=console.is_terminal) as advance:
        found = sort_images(model, pictures, advance=advance)
    for item in found.skipped:
        console.print(f"Set aside: {item.name} ({item.reason})", markup=False)
    text = assignments_csv(found.lines, extra={"novelty": found.novelty})
    if out is None:
        sys.stdout.buffer.write(to_bytes(text))
        return
    opened.write_text(out, text)
    console.print(f"{len(found.lines):,} images sorted: {out}")


def sort(
    run: Annotated[Path, typer.Argument(help="A run folder made by discover.")],
    to: Annotated[Path, typer.Option("--to", help="The folder to make, with one subfolder a category.")],
    mode: Annotated[str, typer.Option(help="symlink, copy or move.")] = "symlink",
    data: Annotated[Path | None, typer.Option(help="Where the images are now, if they have moved since.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done.")] = False,
) -> None:
    """Put a run's images into one folder a category. Never overwrites; the same command goes on where it stopped."""
    from collections import Counter

    from rich.console import Console

    from newkind.errors import ConfigError, RunError
    from newkind.pipeline.export import MODES, carry_out, plan_sorting
    from newkind.progress import progress_bar
    from newkind.runs.assignments import read_assignments
    from newkind.runs.run import Run

    if mode not in MODES:
        raise ConfigError(f"mode is one of {', '.join(MODES)}; got {mode}.")
    opened = Run.open(run)
    root = data or opened.config().get("root")
    if root is None:
        raise RunError(f"{run} was not made from image files, so there is nothing to sort.")
    plan = plan_sorting(read_assignments(opened), Path(root), to)
    console = Console(highlight=False)
    counts = Counter(item.target.parent.name for item in plan)
    verb = {"symlink": "link", "copy": "copy", "move": "move"}[mode]
    if dry_run:
        console.print(f"Would {verb} {len(plan):,} files into {len(counts):,} folders of {to}:")
        for name, count in counts.most_common(12):
            console.print(f"  {name}: {count:,}", markup=False)
        return
    with progress_bar("Sorting", len(plan), unit="files", show=len(plan) > 1000) as advance:
        done = carry_out(plan, mode, advance=advance)
    console.print(f"{done:,} files placed, {len(plan) - done:,} were there already: {len(counts):,} folders in {to}")


def evaluate(
    run: Annotated[Path, typer.Argument(help="A run folder made by discover.")],
    truth: Annotated[Path, typer.Option("--truth", help="A table with file_name and label (or truth) of the images.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Score a run's unlabelled images against a truth that discover did not have: one matching, All/Old/New."""
    import json

    from rich.console import Console

    from newkind.pipeline.evaluate import score_run
    from newkind.progress import percent
    from newkind.runs.run import Run

    found = score_run(Run.open(run), truth)
    if as_json:
        print(json.dumps(found.evaluation.to_dict(), indent=2))
        return
    s, e = found.evaluation.accuracy, found.evaluation.errors
    console = Console(highlight=False)
    console.print(f"{found.evaluation.n_samples:,} unlabelled images have a truth ({found.n_without} have none).")
    shown = "  ".join(f"{name} {percent(value)}" for name, value in (("All", s.all), ("Old", s.old), ("New", s.new)))
    console.print(f"[bold]{shown}[/]  (one matching over all of them)")
    console.print(f"NMI {found.evaluation.nmi:.3f}  ARI {found.evaluation.ari:.3f}")
    console.print(
        f"Errors, % of all: old taken for another old {100 * e.true_old:.1f}, old for new {100 * e.false_new:.1f}, "
        f"new for old {100 * e.false_old:.1f}, new for another new {100 * e.true_new:.1f}"
    )
