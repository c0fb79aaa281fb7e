"""Which settings decide a result, and digests that do not collide."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from error_codes import raises
from newkind.config import BackboneConfig, DiscoverConfig, NCategories, TrainingConfig
from newkind.errors import WeightsError
from newkind.methods.modern import ModernConfig
from newkind.runs.fingerprint import deciding_settings, digest_of, file_digest

CONFIG = DiscoverConfig(method_name="modern", method=ModernConfig(), n_categories=NCategories("fixed", 5))


@pytest.mark.parametrize(
    ("change", "decides"),
    [
        ({"training": TrainingConfig(evaluate_every=3, checkpoint_seconds=1)}, False),
        ({"backbone": BackboneConfig(device="cpu", weights=Path("x.pth"))}, False),
        ({"n_categories": NCategories("fixed", 5, from_truth=True)}, False),
        ({"n_categories": NCategories("estimated")}, True),
        ({"training": TrainingConfig(seed=1)}, True),
        ({"backbone": BackboneConfig(views=4)}, True),
        ({"method": ModernConfig(frame_shrinkage=0.2)}, True),
        ({"averaged_views": (0, 1)}, True),
        ({"effort": "quick"}, False),
        ({"online": True}, True),
    ],
)
def test_what_decides(change: dict, decides: bool) -> None:
    assert (deciding_settings(replace(CONFIG, **change)) != deciding_settings(CONFIG)) == decides


def test_parts_are_kept_apart() -> None:
    assert digest_of("ab", "c") != digest_of("a", "bc")
    assert digest_of(np.array([1, 2])) != digest_of(np.array([1.0, 2.0]))
    assert digest_of({"a": 1, "b": 2}) == digest_of({"b": 2, "a": 1})
    assert digest_of(None) != digest_of("")


def test_files(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1")
    assert len(file_digest(tmp_path / "a")) == 64
    with raises(WeightsError, "weights-missing"):
        file_digest(tmp_path / "none")
