"""Tables of true classes: read as the data itself is."""

from pathlib import Path

import numpy as np
import pytest

import newkind
from error_codes import raises
from feature_clusters import feature_clusters
from newkind.errors import DataError
from newkind.pipeline.evaluate import RunScores, evaluate_run
from newkind.runs.run import Run


@pytest.fixture(scope="module")
def clouds() -> dict[str, np.ndarray]:
    return feature_clusters(6, 3, n_each=10, dim=8)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, clouds: dict[str, np.ndarray]) -> Run:
    folder = tmp_path_factory.mktemp("evaluated")
    names = [f"img/{i}.jpg" for i in range(len(clouds["labels"]))]
    np.savez(folder / "clouds.npz", features=clouds["features"], labels=clouds["labels"], names=names)
    return newkind.discover(folder / "clouds.npz", folder / "run", n_categories=6, report=False).run


def score(run: Run, folder: Path, lines: list[str], name: str = "truth.csv") -> RunScores:
    path = folder / name
    path.write_text("\n".join(lines) + "\n")
    return evaluate_run(run, path)


def rows(clouds: dict[str, np.ndarray], line: str = "img/{i}.jpg,{k}") -> list[str]:
    return [line.format(i=i, k=k) for i, k in enumerate(clouds["truth"])]


def test_every_way_to_write_a_table_gives_the_same_scores(
    run: Run, tmp_path: Path, clouds: dict[str, np.ndarray]
) -> None:
    plain = score(run, tmp_path, ["file_name,truth", *rows(clouds)]).evaluation
    for name, lines in {
        "spaces.csv": ["file_name , truth", *rows(clouds, " img/{i}.jpg , {k} ")],
        "case.csv": ["File_Name,TRUTH", *rows(clouds)],
        "dots.csv": ["file,label", *rows(clouds, "./img//{i}.jpg,{k}")],
        "windows.csv": ["file;label", *rows(clouds, "img\\{i}.jpg;{k}")],
        "truth.tsv": ["file\tlabel", *rows(clouds, "img/{i}.jpg\t{k}")],
        "truth.jsonl": rows(clouds, '{{"file_name": "img/{i}.jpg", "truth": "{k}"}}'),
    }.items():
        assert score(run, tmp_path, lines, name).evaluation.to_dict() == plain.to_dict(), name


def test_minus_one_is_no_class(run: Run, tmp_path: Path, clouds: dict[str, np.ndarray]) -> None:
    lines = rows(clouds)
    scores = score(
        run, tmp_path, ["file_name,truth", *lines[:-5], *(line.rsplit(",")[0] + ",-1" for line in lines[-5:])]
    )
    assert scores.n_without == 5
    assert scores.evaluation.to_dict()["n_classes"] == 6


def test_two_truths_of_one_image_are_refused(run: Run, tmp_path: Path, clouds: dict[str, np.ndarray]) -> None:
    lines = ["file_name,truth", *rows(clouds)]
    score(run, tmp_path, [*lines, lines[5]])  # the same twice is none
    with raises(DataError, "label-conflict"):
        score(run, tmp_path, [*lines, "./img/59.jpg,another"])


@pytest.mark.parametrize("lines", [["file_name,x", "a,b"], ["x,truth", "a,b"], [""]])
def test_other_columns_are_refused(run: Run, tmp_path: Path, lines: list[str]) -> None:
    with raises(DataError, "missing-column"):
        score(run, tmp_path, lines)
