"""Small finished runs to damage, made once."""

from pathlib import Path

import pytest
from small_runs import SmallRuns, make_runs


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> SmallRuns:
    folder = tmp_path_factory.mktemp("torture")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NEWKIND_CACHE", str(folder / "cache"))
        return make_runs(folder)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEWKIND_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")
