"""The estimated number of categories of a run: its JSON file and its plot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from newkind.clustering.estimate import Estimate
from newkind.errors import RunError
from newkind.runs.estimate_plot import draw_estimate
from newkind.runs.run import Run
from newkind.runs.run_schemas import EstimateFile
from newkind.schema import InvalidJson, check_json

__all__ = ["estimate_from_json", "load_estimate", "save_estimate"]


def save_estimate(run: Run, estimate: Estimate) -> None:
    """Write estimate-k.json and estimate-k.svg into a run folder."""
    run.write_text(run.estimate_plot, draw_estimate(estimate))
    run.write_json(run.estimate_file, estimate.to_json())


def load_estimate(run: Run) -> Estimate | None:
    """Estimate that was saved in a run folder; None if there is none."""
    if not run.estimate_file.exists():
        return None
    return estimate_from_json(run.read_json(run.estimate_file), run.estimate_file)


def estimate_from_json(content: dict[str, Any], path: Path) -> Estimate:
    """Estimate from the content of its JSON file; `path` is for error messages."""
    try:
        check_json(content, EstimateFile)
        return Estimate(**content | {"curve": tuple((int(k), float(score)) for k, score in content["curve"])})
    except (InvalidJson, TypeError, ValueError) as error:
        raise RunError(
            f"{path} cannot be read ({error}).",
            fix="Delete it; the number of categories will be estimated again.",
            code="unreadable",
            file=path,
        ) from None
