"""Unsure images, outliers and calibration in the report and in the terminal."""

from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from newkind.report.calibration import calibration_text, novelty_text, sure_text
from newkind.report.contents import KNOWN, NEW, UNSURE, RunContents, read_contents
from newkind.report.headline import headline_of
from newkind.report.page_data import _kinds
from newkind.report.questionable import outlier_lines, unsure_lines
from newkind.report.summary import summary_of
from newkind.report.write import write_report
from newkind.runs.assignments import assignments_csv, read_assignments
from newkind.runs.run import Run

LEAST = 0.5
CARD = {
    "calibrated": True,
    "temperature": 0.07,
    "calibration_error": 0.041,
    "raw_calibration_error": 0.112,
    "novelty": {"threshold": 0.37, "false_known": 0.06, "false_new": 0.04},
}


@pytest.fixture
def doubtful(run: Run) -> Run:
    """The run with unsure images below a confidence of 0.5, three outliers, and a calibration."""
    lines = [
        replace(
            line,
            status="unsure" if line.status != "labelled" and line.confidence < LEAST else line.status,
            novelty=0.5,
            outlier=i in (10, 20, 30),
        )
        for i, line in enumerate(read_assignments(run))
    ]
    run.write_text(run.assignments_file, assignments_csv(lines))
    config = run.config()
    run.update_config(config=config["config"] | {"min_confidence": LEAST})
    run.write_json(run.model_card, {"confidence": CARD})
    return run


@pytest.fixture
def contents(doubtful: Run) -> RunContents:
    return read_contents(doubtful)


def test_every_image_is_counted_once(contents: RunContents) -> None:
    h = headline_of(contents)
    assert h.n_unsure == int((contents.confidence[contents.is_free] < LEAST).sum()) > 0
    assert h.n_in_known + h.n_in_new + h.n_unsure == h.n_unlabelled == int(contents.is_free.sum())
    assert h.n_outliers == 3


def test_unsure_images_and_outliers_are_images_to_check(contents: RunContents) -> None:
    lines = unsure_lines(contents)
    assert (contents.status[lines] == UNSURE).all()
    assert (np.diff(contents.confidence[lines]) >= 0).all()
    assert sorted(outlier_lines(contents).tolist()) == [10, 20, 30]
    assert len(outlier_lines(replace(contents, outlier=None))) == 0


def test_scripts_see_the_kind_of_the_category(contents: RunContents) -> None:
    kinds, unsure = _kinds(contents), contents.status == UNSURE
    is_new = np.array([category.status == "new" for category in contents.categories])[contents.category]
    np.testing.assert_array_equal(kinds[unsure], np.where(is_new[unsure], NEW, KNOWN))
    np.testing.assert_array_equal(kinds[~unsure], contents.status[~unsure])


def test_the_page_and_the_terminal_show_them(doubtful: Run) -> None:
    page = write_report(doubtful).read_text()
    console = Console(width=200, record=True, quiet=False, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(summary_of(doubtful))
    console.file.close()
    terminal = console.export_text()
    n_unsure = headline_of(read_contents(doubtful)).n_unsure
    assert f'Unsure images <span class="number">{n_unsure}</span>' in page
    assert 'Outliers <span class="number">3</span>' in page
    for number in ("0.041", "0.112", "0.37"):
        assert number in page
        assert number in terminal
    assert "Unsure images" in terminal
    assert "Outliers" in terminal


def test_a_run_without_all_this_shows_none_of_it(run: Run) -> None:
    page = write_report(run).read_text()
    assert "Unsure images" not in page
    assert "Outliers" not in page
    h = headline_of(read_contents(run))
    assert (h.n_unsure, h.n_outliers, h.calibration, h.novelty, h.sure) == (0, None, "", "", "")


def test_texts_of_what_files_may_contain() -> None:
    assert "not calibrated" in calibration_text({"calibrated": False, "reason": "too few labelled images"})
    assert "calibrated" in calibration_text({"calibrated": True, "calibration_error": "?"})
    assert (
        calibration_text({}) == novelty_text({}) == novelty_text({"novelty": {"threshold": 7}}) == sure_text(None) == ""
    )
    assert "92.0 %" in sure_text({"coverage": 0.8, "by_name": 0.92})
    assert sure_text({"coverage": 0.0, "by_name": None}) == ""
