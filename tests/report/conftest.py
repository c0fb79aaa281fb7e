"""Small finished runs, written as `discover` writes them but without training."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from newkind.report.write import write_report
from newkind.runs.assignments import Assignment, Category, assignments_csv, category_rows
from newkind.runs.run import Run
from painted_run import write_run

MakeRun = Callable[..., Run]


def write_many(
    folder: Path, *, n_known: int = 30, n_new: int = 30, n_each: int = 2, long_names: bool = True, dim: int = 0
) -> Run:
    """A run of many categories without images and true classes; with features of `dim` values, if that is not 0."""
    suffix = ".Rose_breasted_Long_tailed_Grosbeak_of_the_North" if long_names else ""
    names = [f"{k:03d}{suffix}" for k in range(n_known)] + [f"new-{k + 1:02d}" for k in range(n_new)]
    folder.mkdir(parents=True, exist_ok=True)
    run = Run(folder)
    run.write_config({"data": "/home/somebody/birds", "root": "/home/somebody/birds", "fingerprint": "many"})
    run.write_json(
        run.categories_file,
        category_rows(
            [Category(name, "known" if k < n_known else "new", k, n_each, 0.4) for k, name in enumerate(names)]
        ),
    )
    lines = [
        Assignment(f"{name}/{i}_0001.jpg", name, "known" if k < n_known else "new", 0.4, names[k - 1], 0.35)
        for k, name in enumerate(names)
        for i in range(n_each)
    ]
    if dim:
        rng = np.random.default_rng(0)
        centres = np.repeat(rng.normal(size=(len(names), dim)), n_each, axis=0)
        run.write_features(centres + 0.4 * rng.normal(size=centres.shape))
    run.write_text(run.assignments_file, assignments_csv(lines))
    return run


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """`make_run(name, **options)`: runs of the same images in tmp_path/data."""

    def make(name: str = "run", **options: object) -> Run:
        return write_run(tmp_path / name, tmp_path / "data", **options)  # type: ignore[arg-type]

    return make


@pytest.fixture
def run(make_run: MakeRun) -> Run:
    return make_run()


def _reported(folder: Path, *, n_each: int) -> Run:
    """A run with its report."""
    finished = write_run(folder / "run", folder / "data", n_each=n_each)
    write_report(finished)
    return finished


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run with its report, for tests that only read it."""
    return _reported(tmp_path_factory.mktemp("written"), n_each=30)


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run with more than 120 images in each category, with its report."""
    return _reported(tmp_path_factory.mktemp("large"), n_each=150)


@pytest.fixture(scope="session")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run with a report that compares it with another one."""
    folder = tmp_path_factory.mktemp("compared")
    first, second = (write_run(folder / name, folder / "data", seed=seed) for seed, name in enumerate(("run", "other")))
    write_report(first, compare=second)
    return first


@pytest.fixture(scope="session")
def many(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of many categories with long names, with its report."""
    finished = write_many(tmp_path_factory.mktemp("many") / "run")
    write_report(finished)
    return finished


@pytest.fixture(scope="session")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of 40 categories on a map, with its report."""
    folder = tmp_path_factory.mktemp("crowded")
    finished = write_many(folder / "run", n_known=20, n_new=20, n_each=20, long_names=False, dim=16)
    write_report(finished)
    return finished
