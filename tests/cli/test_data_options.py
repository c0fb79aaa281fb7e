"""Options for tables, boxes and groups on the command line: said aloud, passed on, and refused with exit code 2."""

import io
import json
import tarfile
from pathlib import Path

import numpy as np
import openpyxl
import pandas as pd
import pytest


def test_inspect_says_which_columns_it_uses(newkind, pile: Path) -> None:
    rows = [["apple/0.jpg", "apple", "b1"], ["pear/0.png", "pear", "b2"], ["loose.bmp", "NA", "b1"]]
    pd.DataFrame(rows, columns=["Filename", "Species", "burst"]).to_excel(pile / "my photos.xlsx", index=False)
    done = newkind("inspect", pile / "my photos.xlsx", "--group-column", "burst")
    assert done.returncode == 0, done.stderr
    for mentioned in ("Filename", "Species", "--label-column", "'NA'", "2; images of a group", "--group-column burst"):
        assert mentioned in done.stdout
    shown = json.loads(newkind("inspect", pile / "my photos.xlsx", "--group-column", "burst", "--json").stdout)
    assert (shown["n_groups"], shown["metadata"], shown["n_labelled"]) == (2, ["burst"], 2)


def test_from_a_table_to_scores(newkind, tmp_path: Path) -> None:
    """discover and evaluate with columns of other names; metadata and options are kept in the run."""
    rng = np.random.default_rng(0)
    kind = np.repeat(np.arange(4), 20)
    np.save(tmp_path / "x.npy", (3 * np.eye(4, 8)[kind] + rng.normal(size=(80, 8))).astype(np.float32))
    names = np.array(["oak", "ash", "elm", "fir"])
    frame = pd.DataFrame({"photo": [f"{i}.jpg" for i in range(80)], "really": names[kind], "tree": np.arange(80) // 4})
    frame["name"] = np.where((kind < 2) & (np.arange(80) % 8 == 0), names[kind], "unknown")
    frame.to_parquet(tmp_path / "rows.parquet")
    frame[["photo", "really"]].to_excel(tmp_path / "truth.xlsx", index=False)
    columns = ("--labels", tmp_path / "rows.parquet", "--label-column", "name", "--group-column", "tree")
    run = tmp_path / "run"
    done = newkind("discover", tmp_path / "x.npy", "--out", run, *columns, "--method", "kmeans", "--n-categories", "4")
    assert done.returncode == 0, done.stderr
    answers = pd.read_csv(run / "assignments.csv")
    assert list(answers.columns[-2:]) == ["really", "tree"]
    assert answers.groupby("tree")["category"].nunique().max() == 1
    assert json.loads((run / "config.json").read_text())["reading"]["group_column"] == "tree"
    scored = newkind("evaluate", run, "--truth", tmp_path / "truth.xlsx", "--truth-column", "really", "--json")
    assert scored.returncode == 0, scored.stderr
    assert json.loads(scored.stdout)["n_samples"] == (answers["status"] != "labelled").sum()
    again = newkind("report", run)
    assert again.returncode == 0, again.stderr


@pytest.mark.parametrize("verb", ["inspect", "discover", "estimate-k", "tune", "evaluate"])
def test_bad_files_end_with_exit_code_2(fails, features: Path, tmp_path: Path, verb: str) -> None:
    """One sentence, and nothing is written, whatever the command."""
    bad = {
        "cut.xlsx": b"PK\x03\x04",
        "cut.parquet": b"PAR1",
        "boxes.json": b'{"images": 3}',
        "cut.tar": b"x" * 700,
        "columns.csv": b"a,b\n1,2\n",
    }
    codes = {"boxes.json": "bad-boxes", "columns.csv": "missing-column"}
    name = {"inspect": "cut.xlsx", "discover": "boxes.json", "estimate-k": "cut.tar", "tune": "columns.csv"}.get(
        verb, "cut.parquet"
    )
    path = tmp_path / name
    path.write_bytes(bad[name])
    out = tmp_path / "out"
    if verb == "evaluate":
        import newkind as package

        package.discover(features, out, method="kmeans", n_categories=10, report=False)
        fails("unreadable", "evaluate", out, "--truth", path)
        return
    fails(codes.get(name, "unreadable"), verb, path, *(() if verb == "inspect" else ("--out", out)))
    assert not out.exists()


def test_archives_and_options_that_do_not_apply(fails, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        archive.addfile(tarfile.TarInfo("../1.png"), io.BytesIO())
    fails("unsafe-name", "inspect", tmp_path / "x.tar")
    book = openpyxl.Workbook()
    book.active.append(["file", "label"])
    book.save(tmp_path / "t.xlsx")
    done = fails("unused-option", "inspect", tmp_path / "t.xlsx", "--labels", "y.txt")
    assert "--labels" in done.stderr
