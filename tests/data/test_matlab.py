"""Variables of MATLAB files: what they contain, and damage that crashes the parser."""

from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from error_codes import raises
from newkind.data.matlab import read_matlab
from newkind.errors import DataError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    rows = np.array([(3, "a.jpg"), (1, "b.jpg")], dtype=[("class", "O"), ("fname", "O")])
    savemat(tmp_path / "x.mat", {"x": np.arange(6.0), "names": np.array(["a", "b"], dtype=object), "rows": rows})
    return tmp_path / "x.mat"


def test_texts_numbers_and_structures(path: Path) -> None:
    assert read_matlab(path, "names") == ["a", "b"]
    assert read_matlab(path, "x") == [0, 1, 2, 3, 4, 5]
    assert read_matlab(path, "rows") == [{"class": 3, "fname": "a.jpg"}, {"class": 1, "fname": "b.jpg"}]


def test_a_parser_that_crashes_does_not_end_this_process(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with raises(DataError, "damaged-dataset"):
        read_matlab(path, "nothing")
    monkeypatch.setattr("newkind.data.matlab.PROGRAM", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    with raises(DataError, "damaged-dataset"):
        read_matlab(path, "x")
    path.write_bytes(path.read_bytes()[:200])
    monkeypatch.undo()
    with raises(DataError, "damaged-dataset"):
        read_matlab(path, "x")
