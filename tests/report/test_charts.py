"""Charts: round ticks that enclose the values, and only finite numbers are drawn."""

import math
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from newkind.report.charts import Axes, Series, bars, line_panel, nice_ticks, short_number
from newkind.report.contents import read_contents
from newkind.report.provenance import data_name, estimate_panel, flatten, metric_panels, settings_tables, title_of
from newkind.runs.run import Run

NUMBERS = st.floats(-1e6, 1e6)


@settings(deadline=None)
@given(NUMBERS, NUMBERS, st.integers(2, 8))
def test_ticks_enclose_the_range_at_equal_steps(a: float, b: float, n: int) -> None:
    low, high = min(a, b), max(a, b)
    found = nice_ticks(low, high, n)
    slack = 1e-6 * max(abs(low), abs(high), 1e-3)
    assert found[0] <= low + slack
    assert found[-1] >= high - slack
    assert 2 <= len(found) <= n + 4
    steps = [y - x for x, y in pairwise(found)]
    assert max(steps) == pytest.approx(min(steps), rel=1e-3)


def test_lines_are_inside_of_the_chart() -> None:
    panel = line_panel("t", [Series("a", [(1, 5.0), (2, 1.0), (3, 3.0)]), Series("b", [(2, 2.0)])])
    assert panel is not None
    assert [curve.last for curve in panel.curves] == ["3", "2"]
    for curve in panel.curves:
        for x, y in curve.dots:
            assert panel.left <= x <= panel.right
            assert panel.top <= y <= panel.bottom
    (x1, y1), (x2, y2), _ = panel.curves[0].dots
    assert x1 < x2
    assert y1 < y2  # the larger value is higher up


def test_a_count_starts_at_0_and_has_whole_ticks() -> None:
    for most, texts in ((200, ["0", "50", "100", "150", "200"]), (2, ["0", "1", "2"]), (1, ["0", "1"])):
        panel = line_panel("t", [Series("a", [(1, most - 1), (2, most)])], Axes(whole=True))
        assert panel is not None
        assert [tick.text for tick in panel.y_ticks] == texts


@pytest.mark.parametrize("most", [0.9, 0.04, 0.01, 0.008, 0.0007])
def test_small_percentages_are_not_rounded(most: float) -> None:
    panel = line_panel("t", [Series("a", [(1, 0.0), (2, most)])], Axes(percent=True))
    assert panel is not None
    texts = [tick.text for tick in panel.y_ticks]
    steps = [float(b.rstrip(" %")) - float(a.rstrip(" %")) for a, b in pairwise(texts)]
    assert min(steps) > 0
    assert max(steps) == pytest.approx(min(steps))


def test_values_that_are_not_finite_numbers_are_left_out() -> None:
    odd = [(1, math.nan), (2, math.inf), (3, None), (4, "<script>"), ("x", 1.0), (5, True), (6, 2.0)]
    panel = line_panel("t", [Series("a", odd), Series("b", [(1, None)])])
    assert panel is not None
    assert len(panel.curves) == 1
    assert len(panel.curves[0].dots) == 1
    assert line_panel("t", [Series("a", [(1, math.nan)])]) is None
    assert line_panel("t", []) is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (3.0, "3"),
        (0.12345, "0.123"),
        (12345, "12.3k"),
        (2.5e6, "2.5M"),
        (0.00012, "1.2e-4"),
        (1234.5, "1234"),
        (-0.5, "-0.5"),
    ],
)
def test_short_numbers(value: float, text: str) -> None:
    assert short_number(value) == text


def test_bars_have_the_heights_of_their_values() -> None:
    found = bars([(4, "new", "a"), (1, "known", "b"), (0, "new", "c")], width=30, height=40)
    assert [bar.height for bar in found] == [40, 10, 0]
    assert [bar.x for bar in found] == [0, 10, 20]
    assert bars([], width=10, height=10) == []
    assert [bar.height for bar in bars([(0, "new", "")], width=10, height=10)] == [0]


def test_every_metric_is_drawn_that_was_measured_more_than_once(run: Run) -> None:
    panels = metric_panels(read_contents(run).metrics)
    assert [panel.title for panel in panels] == [
        "Accuracy",
        "Total loss",
        "Contrastive loss (InfoNCE)",
        "Learning rate",
    ]
    assert [curve.name for curve in panels[0].curves] == ["All", "Old"]  # New is not a number
    assert [curve.last for curve in panels[0].curves] == ["90.0 %", "20.0 %"]
    more = metric_panels(
        [{"epoch": 1, "active_prototypes": 9, "loss/total": 1.0}, {"epoch": 2, "active_prototypes": 7}]
    )
    assert [panel.title for panel in more] == ["Categories in use"]
    assert more[0].curves[0].last == "7"
    assert metric_panels([]) == []
    assert metric_panels([{"loss/total": 3.0}]) == []  # no epoch


def test_the_estimate_has_its_interval(run: Run) -> None:
    assert estimate_panel(read_contents(run)) is None
    curve = [[4, 0.2], [8, 0.9], [16, 0.4]]
    run.write_json(run.estimate_file, {"n_categories": 8, "low": 6, "high": 99, "curve": curve})
    panel = estimate_panel(read_contents(run))
    assert panel is not None
    assert panel.band is not None
    assert panel.mark is not None
    assert panel.left < panel.band[0] < panel.mark < panel.band[1] == panel.right
    run.write_json(run.estimate_file, {"curve": "none", "low": "x"})
    assert estimate_panel(read_contents(run)) is None


def test_all_settings_are_listed(run: Run) -> None:
    tables = settings_tables(replace(read_contents(run), seconds={"features": 90.0}))
    facts = {table.title: table.rows for table in tables}
    assert ("entropy weight", "1") in facts["Method"]
    assert ("time: features", "2 min") in facts["Run"]
    assert ("time: training", "4 s") in facts["Run"]
    assert ("weights sha256", "ab12") in facts["Machine, versions, weights"]
    assert flatten({"a": {"b_c": True, "d": None}, "e": ""}) == [("a: b c", "yes")]
    assert flatten(["not", "a", "dict"]) == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/home/somebody/weights.pth", "weights.pth"),
        ("/weights.pth", "weights.pth"),
        ("~/somebody/my weights.pth", "my weights.pth"),
        ("../somebody/birds/", "birds/"),
        ("C:\\Users\\somebody\\birds", "birds"),
        ("model hub (timm/vit_small)", "model hub (timm/vit_small)"),
        ("200 categories, as many as the truth has", "200 categories, as many as the truth has"),
        ("/", "/"),
    ],
)
def test_folders_are_left_out(text: str, shown: str) -> None:
    assert flatten({"a": text}) == [("a", shown)]


@pytest.mark.parametrize(
    ("data", "root", "title", "told"),
    [
        ("cub:/somebody/data", "/somebody/data", "CUB-200-2011", "CUB-200-2011 (cub)"),
        ("cub in ../somebody/data", "/somebody/data/CUB_200_2011/images", "CUB-200-2011", "CUB-200-2011 (cub)"),
        ("/somebody/birds/metadata.csv", "/somebody/birds", "birds", "birds/metadata.csv"),
        ("/somebody/birds.csv", "/somebody", "somebody", "birds.csv"),
        ("/somebody/birds", "/somebody/birds", "birds", "birds"),
        ("features", None, "features", "features"),
        (None, None, "Newkind", ""),
    ],
)
def test_the_name_of_the_data(run: Run, data: str | None, root: str | None, title: str, told: str) -> None:
    contents = replace(read_contents(run), config={"data": data, "root": root})
    assert title_of(contents) == title
    assert data_name(contents) == told


@pytest.mark.parametrize(
    ("low", "high"), [(2.4e-12, 2.4e-12), (0.0, 5e-324), (1e-310, 1e-310), (-1e-200, 1e-200), (1e6, 1e6 + 1e-10)]
)
def test_ticks_of_tiny_ranges(low: float, high: float) -> None:
    found = nice_ticks(low, high, 4)
    assert len(set(found)) == len(found) >= 2
    assert found[0] <= low
    assert high <= found[-1]
