"""Where cameras were, from a table of deployments; and days without a time."""

import csv
import io
import logging
import zipfile
from datetime import datetime
from pathlib import Path

import pytest

from error_codes import raises
from newkind.discovery import Discovery
from newkind.errors import DataError
from newkind.runs.metadata import RunMetadata, metadata_csv
from painted_run import write_run

PLACES = (
    "site,lat,lon,start,end\nA,51.5,7.25,2024-04-30,2024-06-01\nB,52.5,7.5,2024-05-01 06:00:00,2024-06-02 12:00:00\n"
)


def make(folder: Path, columns: dict[str, list[str]]) -> Discovery:
    """A run of 16 images with metadata columns; shorter columns are repeated."""
    run = write_run(folder / "run", folder / "data", n_each=4)
    found = Discovery(run)
    files = found.answer.files
    rows = {file: tuple(values[i % len(values)] for values in columns.values()) for i, file in enumerate(files)}
    run.write_text(run.metadata_file, metadata_csv(files, RunMetadata(tuple(columns), rows)))
    return found


def table(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text())))


def test_places_and_periods_are_those_of_the_table(tmp_path: Path) -> None:
    run = make(tmp_path, {"site": ["A", "B"], "date": ["2024-05-03 07:30:00"]})
    (tmp_path / "sites.csv").write_text(PLACES)
    with raises(DataError, "missing-column"):
        run.export(tmp_path / "out", format="camtrap-dp", timezone="+02:00")
    out = run.export(tmp_path / "out", format="camtrap-dp", timezone="+02:00", deployments=tmp_path / "sites.csv")
    first, second = table(out / "deployments.csv")
    assert (first["deploymentID"], first["latitude"], first["longitude"]) == ("A", "51.5", "7.25")
    assert (first["deploymentStart"], first["deploymentEnd"]) == (
        "2024-04-30T00:00:00+02:00",
        "2024-06-01T23:59:59+02:00",
    )
    assert second["deploymentStart"] == "2024-05-01T06:00:00+02:00"
    assert first["deploymentComments"] == ""


def test_places_without_periods(tmp_path: Path) -> None:
    run = make(tmp_path, {"site": ["A"], "date": ["2024-05-03 07:30:00", "2024-05-04 07:30:00"]})
    (tmp_path / "sites.csv").write_text("Station;Latitude;Longitude\nA;51.5;7.25\n")
    out = run.export(tmp_path / "out", format="camtrap-dp", timezone="Z", deployments=tmp_path / "sites.csv")
    (row,) = table(out / "deployments.csv")
    assert (row["deploymentStart"], row["deploymentEnd"]) == ("2024-05-03T07:30:00+00:00", "2024-05-04T07:30:00+00:00")
    assert row["deploymentComments"]


def test_images_outside_of_the_period_are_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run = make(tmp_path, {"site": ["A"], "date": ["2019-01-01 00:00:01"]})
    (tmp_path / "sites.csv").write_text(PLACES)
    with caplog.at_level(logging.WARNING, "newkind"):
        run.export(tmp_path / "out", format="camtrap-dp", timezone="Z", deployments=tmp_path / "sites.csv")
    assert any("16 images" in record.message and "A" in record.message for record in caplog.records)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("missing-column", "site,latitude\nA,1\n"),
        ("missing-column", ""),
        ("missing-value", "site,lat,lon\nA,,7\n"),
        ("invalid-coordinate", "site,lat,lon\nA,north,7\n"),
        ("invalid-coordinate", "site,lat,lon\nA,91,7\n"),
        ("invalid-time", "site,lat,lon,start\nA,9,7,May\n"),
        ("duplicate-deployment", "site,lat,lon\nA,9,7\nA,9,8\n"),
        ("unknown-deployment", "site,lat,lon\nB,9,7\n"),
        ("cell-count", "site,lat,lon\nA,9\n"),
    ],
)
def test_bad_tables(tmp_path: Path, code: str, text: str) -> None:
    run = make(tmp_path, {"site": ["A"], "date": ["2024-05-03 07:30:00"]})
    (tmp_path / "sites.csv").write_text(text)
    with raises(DataError, code):
        run.export(tmp_path / "out", format="camtrap-dp", timezone="Z", deployments=tmp_path / "sites.csv")
    assert not (tmp_path / "out").exists()


def test_missing_and_other_files(tmp_path: Path) -> None:
    run = make(tmp_path, {"site": ["A"], "date": ["2024-05-03"]})
    (tmp_path / "sites.pdf").write_text("x")
    for name, code in (("gone.csv", "unreadable"), ("sites.pdf", "unsupported-format")):
        with raises(DataError, code):
            run.export(tmp_path / "out", format="camtrap-dp", timezone="Z", deployments=tmp_path / name)


def test_date_and_time_in_two_columns(tmp_path: Path) -> None:
    columns = {"site": ["A"], "Date": ["2024-05-03 00:00:00"], "Time": ["7:30", "19:30:05"], "lat": ["1"], "lon": ["2"]}
    out = make(tmp_path, columns).export(tmp_path / "out", format="camtrap-dp", timezone="Z")
    times = {row["timestamp"] for row in table(out / "media.csv")}
    assert times == {"2024-05-03T07:30:00+00:00", "2024-05-03T19:30:05+00:00"}


def test_a_day_stays_a_day(tmp_path: Path) -> None:
    """Darwin Core and EcoTaxa get no midnight that nobody observed, and need no time zone for it."""
    run = make(tmp_path, {"date": ["2024-05-03"]})
    with zipfile.ZipFile(run.export(tmp_path / "d.zip", format="darwin-core")) as archive:
        rows = list(csv.DictReader(io.StringIO(archive.read("occurrence.csv").decode())))
    assert {row["eventDate"] for row in rows} == {"2024-05-03"}
    out = run.export(tmp_path / "out", format="ecotaxa", mode="symlink")
    (header, *_) = (out / "ecotaxa_items.tsv").read_text("utf-8-sig").splitlines()
    assert "object_date" in header.split("\t")
    assert "object_time" not in header.split("\t")


def test_midnight_among_times_is_a_time(tmp_path: Path) -> None:
    run = make(tmp_path, {"date": ["2024-05-03 00:00:00", "2024-05-03 00:00:01"]})
    with zipfile.ZipFile(run.export(tmp_path / "d.zip", format="darwin-core", timezone="Z")) as archive:
        rows = list(csv.DictReader(io.StringIO(archive.read("occurrence.csv").decode())))
    assert {row["eventDate"] for row in rows} == {"2024-05-03T00:00:00+00:00", "2024-05-03T00:00:01+00:00"}


def test_an_end_in_a_spreadsheet_is_the_end_of_its_day(tmp_path: Path) -> None:
    """A cell with a date is read as midnight."""
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["site", "lat", "lon", "start", "end"])
    book.active.append(["A", 51.5, 7.25, datetime(2024, 4, 30), datetime(2024, 5, 3)])
    book.save(tmp_path / "sites.xlsx")
    run = make(tmp_path, {"site": ["A"], "date": ["2024-05-03 07:30:00"]})
    out = run.export(tmp_path / "out", format="camtrap-dp", timezone="Z", deployments=tmp_path / "sites.xlsx")
    (row,) = table(out / "deployments.csv")
    assert (row["deploymentStart"], row["deploymentEnd"]) == ("2024-04-30T00:00:00+00:00", "2024-05-03T23:59:59+00:00")
