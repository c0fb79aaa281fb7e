"""The table in the terminal."""

from dataclasses import replace

from rich.console import Console

from newkind.report.contents import read_contents
from newkind.report.headline import headline_of
from newkind.report.summary import summary_of, summary_table
from newkind.runs.run import Run


def printed(table: object, width: int = 100) -> str:
    console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(table)
    console.file.close()
    return console.export_text()


def test_the_same_numbers_as_the_headline(run: Run) -> None:
    text = printed(summary_of(run))
    h = headline_of(read_contents(run))
    assert "8 labelled, 40 sorted" in text
    assert f"{h.n_into_new} images" in text
    assert "new-01" in text
    assert "new-03" not in text  # holds nothing
    assert "All 80.0" in text
    assert len(text.splitlines()) == 7


def test_many_categories_and_no_truth(run: Run) -> None:
    h = headline_of(read_contents(run))
    many = tuple((f"[bold]{i}\n" + "x" * 50, 100 - i, 0.5) for i in range(30))
    text = printed(summary_table(replace(h, largest=many, n_new=30, accuracy=None, n_doubtful=0)))
    assert "22 more" in text
    assert "[bold]0\\n" in text  # neither markup nor a line end
    assert "Accuracy" not in text
    assert "between" not in text
    assert len(text.splitlines()) == 13


def test_a_run_that_is_sure_of_nothing(run: Run) -> None:
    text = printed(summary_table(replace(headline_of(read_contents(run)), sure=0.0, median=0.57)))
    assert "half of the images at least 57 % sure" in text
    assert "0 % of images" not in text


def test_nothing_new(run: Run) -> None:
    h = headline_of(read_contents(run))
    assert "New categories" in printed(summary_table(replace(h, largest=(), n_new=0, n_into_new=0)))
