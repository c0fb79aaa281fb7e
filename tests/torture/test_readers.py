"""A share of the fuzz of all readers; `make torture` fuzzes them for longer."""

import random
import warnings
from pathlib import Path

import pytest
from readers import Reader, damaged, readers, try_reader
from small_runs import SmallRuns

N_FILES = 40


@pytest.fixture(scope="module")
def every_reader(runs: SmallRuns, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Reader]:
    folder = tmp_path_factory.mktemp("readers")
    return {"": Reader("", str(folder), b"", print)} | {reader.name: reader for reader in readers(runs, folder)}


def test_readers_read_sound_files(every_reader: dict[str, Reader]) -> None:
    folder = Path(every_reader[""].file)
    for name in ("JSON", "true classes", "npz", "run (config.json)", "run (model.json)", "image (png)", "checkpoint"):
        reader = every_reader[name]
        path = folder / reader.file
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(reader.content)
        reader.read(path)


def test_damaged_files_raise_only_errors_with_a_code(
    every_reader: dict[str, Reader], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(every_reader[""].file)
    monkeypatch.setenv("NEWKIND_CACHE", str(folder))
    numbers = random.Random(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow warns of what it can still read
        for reader in every_reader.values():
            for _ in range((2 if reader.is_slow else N_FILES) if reader.name else 0):
                try_reader(reader, damaged(reader.content, numbers), folder)
