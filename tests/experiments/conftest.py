"""Data and a protocol that take a second or two."""

from dataclasses import replace
from pathlib import Path

import pytest
from small_features import write_blobs

from newkind.config import BackboneConfig
from newkind.experiments.paper.dataset import BenchData, open_bench_data
from newkind.experiments.paper.protocol import Protocol


@pytest.fixture
def blobs(tmp_path: Path) -> Path:
    return write_blobs(tmp_path / "blobs.npz")


@pytest.fixture
def data(blobs: Path) -> BenchData:
    return open_bench_data(str(blobs))


@pytest.fixture
def cub(data: BenchData) -> BenchData:
    """The same data under the name of a published benchmark."""
    return replace(data, collection=replace(data.collection, benchmark="cub"), title="CUB_200")


@pytest.fixture
def protocol() -> Protocol:
    return Protocol(seeds=2, epochs=2, batch_size=30, backbone=BackboneConfig(device="cpu"))
