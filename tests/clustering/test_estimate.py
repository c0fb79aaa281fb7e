"""The estimate of the number of categories: its text and the median of several."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from newkind.clustering import Estimate


def estimate(k: int, low: int, high: int, *, n_known: int = 5, way: str = "clusters", quality: float = 0.9) -> Estimate:
    return Estimate(n_categories=k, low=low, high=high, n_known=n_known, way=way, quality=quality)


@pytest.mark.parametrize("way", ["clusters", "pairs", "search", "guess"])
@pytest.mark.parametrize("quality", [0.1, 0.4, 0.9])
def test_the_sentence_names_the_number(way: str, quality: float) -> None:
    text = estimate(12, 9, 17, way=way, quality=quality).sentence()
    assert "12" in text
    assert ("17" in text) == (way != "search")
    assert "--" not in text  # the library names parameters, the command line options


def test_the_sentence_says_how_reliable_it_is() -> None:
    good, rough = (estimate(12, 9, 17, quality=quality).sentence() for quality in (0.6, 0.4))
    assert len(rough) > len(good)
    few = estimate(10, 6, 22, way="guess", quality=0.0)
    weak = replace(few, quality=0.12, curve=((5, 0.1), (10, 0.12)))
    assert "0.12" in weak.sentence()
    assert "F1" not in few.sentence()
    for guess in (few, weak):
        assert "`n_categories`" in guess.sentence()


def test_generous_is_the_upper_bound_or_a_quarter_more() -> None:
    assert estimate(10, 8, 20).generous() == 20
    assert estimate(10, 8, 11).generous() == 13
    assert replace(estimate(10, 6, 22), way="guess").generous() == 13  # its interval is very wide


def test_json_keeps_everything() -> None:
    found = replace(estimate(3, 2, 4, n_known=2), curve=((2, 0.1), (3, 0.5)), known_share=0.4)
    again = json.loads(json.dumps(found.to_json()))
    assert Estimate(**again | {"curve": tuple(map(tuple, again["curve"]))}) == found


def test_an_estimate_needs_no_torch() -> None:
    code = "import sys; from newkind.clustering import Estimate; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=180)
    assert done.stdout == "False\n"
