"""`newkind discover --continue`: a run with more images."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from newkind.cli.outcome import print_outcome

__all__ = ["continue_run", "required_data"]


def required_data(data: str | None, add: list[Path] | None) -> str:
    """DATA, which only a continued run can do without."""
    from newkind.errors import ConfigError

    if data is None:
        raise ConfigError("Name the data, or a run with --continue.", code="missing-argument", setting="data")
    if add:
        raise ConfigError("`add` is only used with --continue.", code="other-settings", setting="add")
    return data


def continue_run(run_before: Path, options: dict[str, Any]) -> None:
    """Continue a run with the options that were given, and print the result."""
    from newkind.api import report_outcome
    from newkind.errors import ConfigError
    from newkind.pipeline.continue_run import ContinueConfig
    from newkind.pipeline.continue_run import continue_run as run_continuation
    from newkind.pipeline.continued_images import open_continued
    from newkind.reading import split_reading
    from newkind.runs.run import Run

    how = {name: bool(options.pop(name, False)) for name in ("overwrite", "resume")}
    data, add, out = options.pop("data", None), options.pop("add", ()), Path(options.pop("out"))
    report = options.pop("report", True)
    for name in ("run_before", "first_answer"):
        options.pop(name, None)
    if number := options.pop("n_categories", None):
        options["n_categories"] = _number(number)
    reading, options = split_reading(options)
    if other := sorted(options.keys() - {field.name for field in fields(ContinueConfig)}):
        raise ConfigError(
            f"`{other[0]}` is that of the run that is continued.",
            fix="Leave it out, or start another run with discover.",
            code="other-settings",
            setting=other[0],
        )
    before = Run.open(run_before)
    images = open_continued(before, data=data, add=add, reading=reading)
    outcome = run_continuation(before, images, out, ContinueConfig(**options), **how)
    print_outcome(outcome, report_outcome(outcome, images.collection) if report else None)


def _number(text: str) -> int | None:
    """Number of categories as typed; None for auto."""
    from newkind.config import NCategories

    return NCategories.read(text).number
