"""An estimate on disk, and its plot."""

import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

from error_codes import raises
from newkind.clustering import Estimate
from newkind.errors import RunError
from newkind.runs.estimate_file import load_estimate, save_estimate
from newkind.runs.estimate_plot import draw_estimate
from newkind.runs.run import Run

FOUND = Estimate(
    n_categories=16,
    low=11,
    high=31,
    n_known=7,
    way="clusters",
    quality=0.68,
    curve=((5, 0.4), (16, 0.7), (90, 0.2)),
    known_share=0.44,
)


def test_there_and_back(tmp_path: Path) -> None:
    run = Run(tmp_path)
    assert load_estimate(run) is None
    save_estimate(run, FOUND)
    assert load_estimate(run) == FOUND
    assert (tmp_path / "estimate-k.svg").exists()


def test_a_file_of_an_earlier_version_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "estimate-k.json").write_text(
        '{"n_categories": 16, "low": 11, "high": 31, "n_known": 7, "way": "pairs", "quality": 0.68, "curve": [[5, 0.4], [16, 0.7]]}'
    )
    found = load_estimate(Run(tmp_path))
    assert found is not None
    assert (found.n_categories, found.way, found.known_share) == (16, "pairs", 0.0)
    assert "16" in found.sentence()


@pytest.mark.parametrize("text", ["{}", '{"n_categories": 3, "curve": [[1]]}', '{"curve": 7}'])
def test_a_damaged_file_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "estimate-k.json").write_text(text)
    with raises(RunError, "unreadable"):
        load_estimate(Run(tmp_path))


@pytest.mark.parametrize(
    "estimate",
    [
        FOUND,
        replace(FOUND, way="pairs"),
        replace(FOUND, low=16, high=16),
        replace(FOUND, way="guess"),
        replace(FOUND, way="guess", curve=()),
        replace(FOUND, curve=((1, 0.0),)),
        replace(FOUND, high=4000, low=1),
    ],
)
def test_the_picture_is_well_formed_and_stays_inside(estimate: Estimate) -> None:
    root = ET.fromstring(draw_estimate(estimate))
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    for item in root.iter():
        for name, limit in (("x", width), ("cx", width), ("x1", width), ("y", height), ("cy", height)):
            if name in item.attrib:
                assert -1 <= float(item.attrib[name]) <= limit + 1
    assert "16 categories" in "".join(root.itertext())
