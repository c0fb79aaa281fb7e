"""Images that are added to those of a run."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from error_codes import raises
from newkind.data import Collection, open_data
from newkind.data.added import add_images
from newkind.errors import DataError


@pytest.fixture
def collection(tmp_path: Path) -> Collection:
    """Three images of a table whose columns have unusual names."""
    for name in "abcxy":
        Image.new("RGB", (8, 8)).save(tmp_path / f"{name}.png")
    (tmp_path / "table.csv").write_text("shot,kind\na.png,bee\nb.png,wasp\nc.png,\n")
    return open_data(tmp_path / "table.csv", file_column="shot", label_column="kind")


@pytest.mark.parametrize("header", ["Shot,label", "file_name,kind", "file_name,label", "shot,kind"])
def test_an_added_table_may_have_one_of_the_named_columns(collection: Collection, tmp_path: Path, header: str) -> None:
    table = f"{header}\nx.png,\ny.png,bee\n"
    (tmp_path / "more.csv").write_text(table)
    joined = add_images(collection, [tmp_path / "more.csv"]).catalog
    assert [Path(name).name for name in joined.items.names] == ["a.png", "b.png", "c.png", "x.png", "y.png"]
    assert joined.labels.tolist() == [0, 1, -1, -1, 0]


def test_only_image_files_are_added(collection: Collection, tmp_path: Path) -> None:
    np.savez(tmp_path / "more.npz", features=np.eye(4, dtype=np.float32), labels=np.arange(4))
    with raises(DataError, "not-images"):
        add_images(collection, [tmp_path / "more.npz"])
