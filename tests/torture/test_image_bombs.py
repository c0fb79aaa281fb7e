"""Memory ceiling under image bombs; `make torture` measures with larger ones and more kinds."""

from pathlib import Path

from image_bombs import BAR_MB, make_bombs, measure


def test_image_bombs_stay_below_the_ceiling(tmp_path: Path) -> None:
    files = make_bombs(tmp_path, quick=True)
    assert sum(path.stat().st_size for path in files) < 10e6
    found = measure(tmp_path)
    skipped = found["skipped"]
    assert isinstance(skipped, dict)
    assert {name for name in skipped if "claims" not in name} == set()  # what can be decoded is
    assert all(code == "image-too-large" for code in skipped.values())
    assert isinstance(found["peak_mb"], float)
    assert found["peak_mb"] < BAR_MB
