"""Arrays of .npy files whose header is damaged."""

from pathlib import Path

import numpy as np

from error_codes import raises
from newkind.data import open_data
from newkind.errors import DataError
from newkind.runs.run import Run


def test_a_bracket_in_the_header_is_an_error_with_a_code(tmp_path: Path) -> None:
    """NumPy parses the header as Python text and lets errors of the tokenizer pass."""
    Run(tmp_path).write_features(np.eye(3))
    content = bytearray((tmp_path / "features.npy").read_bytes())
    content[100] = ord("(")
    (tmp_path / "features.npy").write_bytes(content)
    assert Run(tmp_path).features() is None
    (tmp_path / "labels.txt").write_text("a\nb\n\n")
    with raises(DataError, "unreadable"):
        open_data(tmp_path / "features.npy", labels=tmp_path / "labels.txt")
