"""The result of `newkind discover` on the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from newkind.pipeline.results import Outcome

__all__ = ["print_outcome"]


def print_outcome(outcome: Outcome, report: Path | None) -> None:
    """Print the main numbers of a discovery, what is new since the run that it continues, and where its files are."""
    from newkind.cli.messages import next_command, print_line, result_console
    from newkind.data.wording import shell_quoted
    from newkind.methods.registry import find_method
    from newkind.progress import duration
    from newkind.report.contents import outcome_contents
    from newkind.report.since import since_of
    from newkind.report.summary import since_table, summary_of

    run, contents = outcome.run.folder, outcome_contents(outcome)
    print_line()
    result_console().print(summary_of(contents))
    since = since_of(contents)
    if since is not None:
        print_line()
        result_console().print(since_table(contents, since))
    settings = outcome.run.settings()
    parts = ", ".join(f"{name} {duration(seconds)}" for name, seconds in outcome.seconds.items())
    print_line(
        f"\nTime: {parts}. Method {find_method(settings['method_name']).title}, "
        f"backbone {settings['backbone']['name']}."
    )
    print_line(f"Results: {run / 'assignments.csv'}")
    if report is not None:
        print_line(f"Report:  {report}")
    next_command(f"newkind review {shell_quoted(str(run))} --open")
