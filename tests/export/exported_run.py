"""A painted run with metadata and decisions of every kind, as tests of exports use it."""

from pathlib import Path

from newkind.discovery import Discovery
from newkind.runs.metadata import RunMetadata, metadata_csv
from painted_run import write_run

__all__ = ["TIMEZONE", "make_run"]

TIMEZONE = "+02:00"


def make_run(folder: Path) -> Discovery:
    """48 images: new-01 is named, one image is moved, one is junk, one has no category. Columns say when and where."""
    run = write_run(folder / "run", folder / "data", n_each=12)
    found = Discovery(run)
    files = found.answer.files
    rows = {
        file: (f"cam{i % 3}", f"2024-05-{i % 28 + 1:02d} 07:30:00", f"{50 + i % 3}.5", "7.25", f"note, {i}")
        for i, file in enumerate(files)
    }
    columns = ("site", "DateTime", "lat", "lon", "status note")
    run.write_text(run.metadata_file, metadata_csv(files, RunMetadata(columns, rows)))
    found.rename("new-01", "Pyrus communis")
    found.move(files[-1], "apple")
    found.junk(files[-2])
    found.approve(files=files[-3])
    row = len(files) - 4
    for _ in range(2):
        own = found.answer.categories[found.answer.category[row]].id if found.answer.category[row] >= 0 else ""
        if own:
            found.reject(files[row], own)
    assert found.answer.category[row] == -1
    return found
