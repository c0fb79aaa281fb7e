"""Report of a run: one self-contained HTML file, and a table for the terminal."""

from newkind.report.contents import RunContents, contents_of, outcome_contents, read_contents
from newkind.report.summary import summary_of, summary_table
from newkind.report.write import try_report, write_report

__all__ = [
    "RunContents",
    "contents_of",
    "outcome_contents",
    "read_contents",
    "summary_of",
    "summary_table",
    "try_report",
    "write_report",
]
