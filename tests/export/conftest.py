"""One run for all tests of exports, which do not change it."""

from pathlib import Path

import pytest
from exported_run import make_run

from newkind.discovery import Discovery


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Discovery:
    """See `make_run`."""
    folder: Path = tmp_path_factory.mktemp("exported")
    return make_run(folder)
