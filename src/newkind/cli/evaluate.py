"""`newkind evaluate`: score a run against a table of true classes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from newkind.cli.options import RunFolder, config_options
from newkind.reading import ReadingConfig

__all__ = ["evaluate"]


TRUTH = "Table with the files and their true classes, or any other data that has them as truth or labels."


@config_options(reading=ReadingConfig)
def evaluate(
    run: RunFolder,
    truth: Annotated[Path, typer.Option("--truth", help=TRUTH)],
    reading: ReadingConfig,
    as_json: Annotated[bool, typer.Option("--json", help="Print all scores as JSON.")] = False,
) -> None:
    """Score the unlabelled images of a run against a truth that discover did not have."""
    import json

    from newkind.cli.messages import print_line
    from newkind.data.wording import count
    from newkind.pipeline.evaluate import evaluate_run
    from newkind.progress import percent
    from newkind.runs.run import Run

    found = evaluate_run(Run.open(Path(run)), truth, reading)
    result = found.evaluation
    if as_json:
        print(json.dumps(result.to_dict(), indent=2))
        return
    without = f" ({found.n_without:,} have none)" if found.n_without else ""
    print_line(f"{count(result.n_samples, 'unlabelled image')} with a truth{without}.")
    for title, scores in (("Accuracy", result.accuracy), ("By name", result.by_name)):
        shown = "  ".join(f"{name.title()} {percent(getattr(scores, name))}" for name in ("all", "old", "new"))
        print_line(f"{title:<10}{shown}", style="bold")
    print_line("Accuracy: one matching of all categories to all classes. By name: a known class counts only as itself.")
    calibration = "" if result.calibration_error is None else f"  calibration error {result.calibration_error:.3f}"
    print_line(f"NMI {result.nmi:.3f}  ARI {result.ari:.3f}{calibration}")
    if (sure := result.sure) is not None:
        right = "" if sure.by_name is None else f", {percent(sure.by_name)} of them correct by name"
        print_line(f"Sure images: {percent(sure.coverage)} of all{right}")
    e = result.errors
    print_line(
        f"Errors, % of all: old as another old {100 * e.true_old:.1f}, old as new {100 * e.false_new:.1f}, "
        f"new as old {100 * e.false_old:.1f}, new as another new {100 * e.true_new:.1f}"
    )
