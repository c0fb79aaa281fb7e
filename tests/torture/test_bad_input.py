"""A share of the generated bad inputs; `make torture` runs 1,000 of them."""

from pathlib import Path

import pytest
from bad_inputs import KINDS, attempt
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_runs import SmallRuns


@pytest.mark.parametrize("kind", KINDS)
def test_a_bad_input_ends_with_an_error_and_no_traceback(kind: str, runs: SmallRuns, tmp_path: Path) -> None:
    @settings(max_examples=8, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def check(data: st.DataObject) -> None:
        found = attempt(kind, data, runs, tmp_path / "work")
        assert found.done.ended_well, f"{found.arguments}\n{found.done.errors}\n{found.done.traceback}"

    check()
