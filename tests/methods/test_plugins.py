"""Methods of other packages: the example package, installed as a wheel, and classes that are named."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import newkind
from error_codes import raises
from feature_clusters import feature_clusters
from newkind.data import from_features
from newkind.errors import ConfigError, RunError
from newkind.evaluation import accuracy
from newkind.methods import plugins
from newkind.methods.method import Method, MethodConfig
from newkind.methods.registry import all_methods, find_method, resolve_method

EXAMPLE = Path(__file__).parents[2] / "examples" / "newkind-nearest"
CLASS = "newkind_nearest:NearestMeans"
Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder that the example package is installed into, as from a package index."""
    pytest.importorskip("hatchling", reason="the build backend of the example, an extra `dev` of Newkind")
    folder = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    done = subprocess.run(
        [*pip, "--target", str(folder), str(EXAMPLE)], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def command(tmp_path: Path, installed: Path) -> Command:
    """The command line, with the example package or without it."""

    def run(*words: str | Path, plugin: bool = True) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join([*([str(installed)] if plugin else []), os.environ.get("PYTHONPATH", "")])
        environment = os.environ | {"PYTHONPATH": path, "NEWKIND_CACHE": str(tmp_path / "cache"), "COLUMNS": "300"}
        program = [sys.executable, "-m", "newkind", *map(os.fspath, words)]
        return subprocess.run(program, capture_output=True, text=True, check=False, env=environment, timeout=300)

    return run


@pytest.fixture
def features(tmp_path: Path) -> Path:
    path = tmp_path / "clouds.npz"
    np.savez(path, **feature_clusters(6, 3, n_each=20, dim=16))
    return path


def test_the_example_package_from_installation_to_a_missing_package(
    command: Command, features: Path, tmp_path: Path
) -> None:
    assert "newkind-nearest 0.1.0" in command("methods").stdout
    run, words = tmp_path / "run", ("--method", "nearest", "--set", "sharpness=30", "--n-categories", "6")
    done = command("discover", features, "--out", run, "--no-report", *words)
    assert done.returncode == 0, done.stderr
    assert "Nearest means" in done.stdout
    done = command("predict", run, features, "--out", tmp_path / "a.csv")
    assert done.returncode == 0, done.stderr
    done = command("predict", run, features, "--out", tmp_path / "b.csv", plugin=False)
    assert done.returncode == 2
    assert "[missing-plugin]" in done.stderr
    assert "newkind-nearest 0.1.0" in done.stderr
    assert "Traceback" not in done.stderr
    assert command("report", run, plugin=False).returncode == 0  # what needs no model still works
    found = newkind.load(run)
    assert len(found.assignments) == 120
    with raises(RunError, "missing-plugin"):
        _ = found.model


def test_a_class_is_imported_only_if_the_user_names_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLE / "src"))
    monkeypatch.setattr(plugins, "_allowed", set())
    clouds = feature_clusters(6, 3, n_each=20, dim=16)
    data = from_features(clouds["features"], clouds["labels"], truth=clouds["truth"])
    found = newkind.discover(data, tmp_path / "run", method=CLASS, n_categories=6, report=False)
    assert found.outcome is not None
    assert found.outcome.scores is not None
    assert found.outcome.scores.all > 0.9
    names = {name: i for i, name in enumerate(category.name for category in found.categories)}
    free = found.predict(clouds["features"])
    assert accuracy(clouds["truth"], [names[line.category] for line in free], clouds["truth"] < 3).all > 0.9
    plugins._allowed.clear()  # as in a new process
    with raises(RunError, "missing-plugin"):
        _ = newkind.load(tmp_path / "run").model
    monkeypatch.setenv("NEWKIND_METHODS", CLASS)
    assert newkind.load(tmp_path / "run").model.dim == 16


class NoConfig(Method):
    """Has no settings of the right kind."""

    config_class = dict  # type: ignore[assignment]

    def loss_terms(self, features, batch): ...

    def logits(self, features): ...


class Incomplete(Method):
    """Lacks its loss."""

    config_class = MethodConfig

    def logits(self, features): ...


@pytest.mark.parametrize(
    ("found", "code"), [(NoConfig, "not-a-method"), (Incomplete, "not-a-method"), (3, "not-a-method")]
)
def test_entry_points_of_other_things(found: object, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    point = SimpleNamespace(name="odd", value="x:y", dist=None, load=lambda: found)
    monkeypatch.setattr(plugins, "plugins", lambda: {"odd": point})
    with raises(ConfigError, code):
        find_method("odd")


def test_names_of_classes_that_do_not_exist() -> None:
    with raises(ConfigError, "broken-plugin"):
        resolve_method("newkind_nowhere:Method", None)
    with raises(ConfigError, "broken-plugin"):
        resolve_method("newkind:Nothing", None)
    with raises(ConfigError, "method-not-allowed"):
        find_method("os:system")
    assert "modern" in all_methods()
