"""The estimate of the number of categories: its text and the median of several."""

import json
import subprocess
import sys

import pytest

from newkind.clustering import Estimate, median_estimate


def estimate(k: int, low: int, high: int, *, n_known: int = 5, way: str = "pairs", quality: float = 0.9) -> Estimate:
    return Estimate(n_categories=k, low=low, high=high, n_known=n_known, way=way, quality=quality)


@pytest.mark.parametrize("way", ["pairs", "search", "guess"])
@pytest.mark.parametrize("quality", [0.1, 0.9])
def test_the_sentence_names_the_number(way: str, quality: float) -> None:
    text = estimate(12, 9, 17, way=way, quality=quality).sentence()
    assert "12" in text
    assert ("17" in text) == (way == "pairs")
    assert "--" not in text  # the library names parameters, the command line options


def test_generous_is_the_upper_bound_or_a_quarter_more() -> None:
    assert estimate(10, 8, 20).generous() == 20
    assert estimate(10, 8, 11).generous() == 13


def test_the_median_of_several() -> None:
    several = [estimate(20, 15, 30), estimate(10, 8, 12), estimate(14, 13, 40)]
    found = median_estimate(several)
    assert (found.n_categories, found.low, found.high) == (14, 13, 30)
    assert median_estimate(several[:1]) == several[0]
    assert median_estimate(several[:2]).n_categories == 10


def test_bounds_enclose_the_median() -> None:
    found = median_estimate([estimate(10, 10, 10), estimate(11, 4, 11), estimate(12, 12, 12)])
    assert found.low <= found.n_categories <= found.high


def test_json_keeps_everything() -> None:
    found = Estimate(n_categories=3, low=2, high=4, n_known=2, way="pairs", quality=0.5, curve=((2, 0.1), (3, 0.5)))
    again = json.loads(json.dumps(found.to_json()))
    assert Estimate(**again | {"curve": tuple(map(tuple, again["curve"]))}) == found


def test_an_estimate_needs_no_torch() -> None:
    code = "import sys; from newkind.clustering import Estimate; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=180)
    assert done.stdout == "False\n"
