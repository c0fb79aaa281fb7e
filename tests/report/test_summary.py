"""Table for the terminal."""

from dataclasses import replace

from rich.console import Console

from newkind.report.contents import read_contents
from newkind.report.headline import headline_of
from newkind.report.summary import summary_of, summary_table
from newkind.runs.assignments import Category
from newkind.runs.run import Run


def printed(table: object, width: int = 110) -> str:
    console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(table)
    console.file.close()
    return console.export_text()


def test_the_same_numbers_as_the_headline(run: Run) -> None:
    text = printed(summary_of(run))
    h = headline_of(read_contents(run))
    assert "8 labelled, 40 unlabelled" in text
    assert f"{h.n_in_new} images" in text
    assert "new-01" in text
    assert "new-03" not in text  # a category without images
    assert "All 80.0" in text
    assert len(text.splitlines()) == 9
    assert printed(summary_of(read_contents(run))) == text


def test_many_categories_and_no_truth(run: Run) -> None:
    h = headline_of(read_contents(run))
    many = tuple(Category(f"[bold]{i}\n" + "x" * 50, "new", i, 100 - i, 0.5) for i in range(30))
    text = printed(summary_table(replace(h, new_categories=many, accuracy=None, by_name=None, n_ambiguous=0)))
    assert "22 more" in text
    assert "[bold]0\\n" in text  # neither markup nor a line break
    assert "Accuracy" not in text
    assert "Ambiguous" not in text
    assert len(text.splitlines()) == 13


def test_the_median_where_no_image_is_certain(run: Run) -> None:
    text = printed(summary_table(replace(headline_of(read_contents(run)), certain=0.0, median=0.57)))
    assert "57 %" in text
    assert " 0 %" not in text


def test_ambiguous_images_are_counted(run: Run) -> None:
    h = headline_of(read_contents(run))
    assert "Ambiguous images" not in printed(summary_table(replace(h, n_ambiguous=0)))
    assert "Ambiguous images     1,234" in printed(summary_table(replace(h, n_ambiguous=1234)))


def test_the_interval_of_the_number_of_new_categories(run: Run) -> None:
    found = {"low": 5, "high": 9, "n_known": 3, "way": "clusters"}
    contents = replace(read_contents(run), estimate=found)
    assert headline_of(contents).new_interval == (2, 6)
    assert "2 to 6" in printed(summary_of(contents))
    for damaged in (found | {"low": "5"}, found | {"way": "search"}, {}):
        assert headline_of(replace(contents, estimate=damaged)).new_interval is None


def test_no_line_is_broken_in_80_columns(run: Run) -> None:
    h = replace(headline_of(read_contents(run)), accuracy={"all": 0.9, "old": 0.9, "new": 0.9}, n_ambiguous=0)
    h = replace(h, by_name=h.accuracy, new_interval=(120, 300))
    assert len(printed(summary_table(h), width=80).splitlines()) == 8


def test_accuracy_by_name(run: Run) -> None:
    h = headline_of(read_contents(run))
    assert "by name" not in printed(summary_table(replace(h, by_name=None)))
    text = printed(summary_table(replace(h, by_name={"all": 0.75, "old": 0.5})))
    assert "All 75.0  Old 50.0" in text


def test_no_new_categories(run: Run) -> None:
    h = headline_of(read_contents(run))
    assert "New categories" in printed(summary_table(replace(h, new_categories=(), n_in_new=0)))
