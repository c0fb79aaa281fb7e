"""Newkind as people use it from Python: images of all kinds, one result per input, data frames, types, notebooks."""

import io
import logging
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas
import pytest
from PIL import Image

import newkind
from error_codes import raises
from newkind.data import from_features
from newkind.errors import DataError

SMALL = {"backbone": "vit_tiny_patch16_224", "random_weights": True, "device": "cpu"}


@pytest.fixture
def pictures(tmp_path: Path, make_image, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    monkeypatch.setenv("NEWKIND_CACHE", str(tmp_path / "cache"))
    return [make_image(tmp_path / f"{i}.png", seed=i, size=(40, 40)) for i in range(12)]


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    path = tmp_path / "broken.jpg"
    path.write_bytes(b"no image")
    return path


def test_one_result_per_input_of_any_kind(pictures: list[Path], broken: Path, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    labels = ["bee", "wasp", ""] * 4
    rows = zip(pictures, labels, range(12), strict=True)
    table.write_text("file_name,label,site\n" + "".join(f"{p.name},{y},s{i % 2}\n" for p, y, i in rows))
    run = newkind.discover(
        table, tmp_path / "run", n_categories=3, effort="quick", image_size=32, report=False, **SMALL
    )
    assert run.to_dataframe()["site"].tolist() == ["s0", "s1"] * 6
    with Image.open(pictures[3]) as opened:
        picture = opened.convert("RGB")
    missing = tmp_path / "missing.png"
    given = [pictures[3], pictures[3].read_bytes(), picture, np.asarray(picture), broken, None, missing, picture]
    found = run.predict(given)
    assert [line.status == "unreadable" for line in found] == [False] * 4 + [True] * 3 + [False]
    readable = [line for line in found if line.status != "unreadable"]
    assert len({line.category for line in readable}) == 1
    assert all(line.novelty is not None for line in readable)
    frame = run.predict(pandas.Series([str(pictures[0]), None, str(broken)], index=[5, 6, 7])).to_dataframe()
    assert frame["status"].tolist()[1:] == ["unreadable"] * 2
    assert {"file", "category", "confidence", "novelty", "outlier"} <= set(frame.columns)
    column = np.array([str(path) for path in pictures[:3]])
    assert [line.file for line in newkind.predict(tmp_path / "run", column)] == column.tolist()
    with raises(DataError, "no-images"):
        run.predict([])


def test_an_estimator_returns_one_value_per_image(pictures: list[Path], broken: Path) -> None:
    contents = [path.read_bytes() for path in pictures]
    model = newkind.KMeans(3, image_size=32, effort="quick", **SMALL).fit(pictures, ["bee", "wasp", ""] * 4)
    with pytest.warns(UserWarning, match="broken"):
        found = model.predict([pictures[0], broken, pictures[1]])
    assert found[1] == ""
    assert found[[0, 2]].tolist() == model.predict(contents[:2]).tolist()
    with pytest.warns(UserWarning, match="broken"):
        assert np.isnan(model.transform([pictures[0], broken])[1]).all()
    novelty = model.novelty(pictures)
    np.testing.assert_allclose(novelty, model.predict_proba(pictures)[:, model.is_new_].sum(axis=1), rtol=1e-5)
    frame = model.set_output(transform="pandas").transform(pictures[:2])
    assert isinstance(frame, pandas.DataFrame)
    assert frame.columns[0] == "kmeans0"


def test_groups_share_a_category() -> None:
    rng = np.random.default_rng(0)
    centres, truth = 2 * rng.normal(size=(4, 8)), np.arange(120) % 4
    X = centres[truth] + 0.3 * rng.normal(size=(120, 8))
    y = np.where((truth < 2) & (np.arange(120) < 60), truth, -1)
    burst = np.vstack([centres[1] + 0.1, centres[1] - 0.1, centres[3]])  # the last one differs from its burst
    model = newkind.KMeans(4, device="cpu").fit(X, y, groups=np.arange(120))
    alone, together = model.predict(burst), model.predict(burst, groups=["a", "a", "a"])
    assert alone[0] == alone[1] != alone[2]
    assert len(set(together.tolist())) == 1
    run = model._fitted()
    assert len({line.category for line in run.predict(burst.astype(np.float32), groups=["a", "a", "a"])}) == 1
    with raises(DataError, "group-count"):
        run.predict(burst.astype(np.float32), groups=["a"])
    # Two images of a group with different labels contradict each other.
    with raises(DataError, "group-conflict"):
        newkind.KMeans(4, device="cpu").fit(X, y, groups=["x"] * 120)


def test_names_of_the_package() -> None:
    assert dir(newkind) == sorted(newkind.__all__)
    assert {"GCD", "UNO", "RankStats", "ORCA", "DebiasPL", "SimGCD", "KMeans"} <= set(dir(newkind))


def test_messages_are_log_records(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    data = from_features(np.random.default_rng(0).normal(size=(40, 8)), [0, 1, None, None] * 10)
    with caplog.at_level(logging.INFO, "newkind"):
        newkind.discover(data, tmp_path / "run", method="kmeans", n_categories=3, report=False)
    assert any(record.name.startswith("newkind.") for record in caplog.records)
    assert capsys.readouterr() == ("", "")


def test_a_progress_bar_without_a_terminal_is_a_message_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from newkind import progress

    monkeypatch.setattr(progress, "LOG_SECONDS", 0.0)
    monkeypatch.setattr(progress, "status_console", lambda: progress.SafeConsole(file=sys.stderr))
    with progress.show_messages(), progress.progress_bar("Reading", 4) as advance:
        advance(1)
        advance(3)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(",")[0] for line in lines] == ["Reading: 1 of 4 images", "Reading: 4 of 4 images."]


SCRIPT = """
from pathlib import Path

import newkind
from newkind import GCD, SimGCD

run = newkind.discover("images", Path("run"), effort="quick", n_categories=5, image_size=112, epochs=3)
names: list[str] = [category.name for category in run.categories]
for line in run.predict("a.jpg", b"..."):
    share: float | None = line.novelty
model: SimGCD = SimGCD(n_categories=5, effort="quick").fit(["a.jpg"], ["bee"])
shape: tuple[int, ...] = model.predict_proba(["a.jpg"]).shape
estimate: int = newkind.estimate_n_categories("images").n_categories
reveal_type(newkind.predict("run", "a.jpg"))
reveal_type(GCD().fit(["a.jpg"], ["bee"]))
newkind.discover("images", "run", effort="fast")
"""


def test_types_of_a_users_program(tmp_path: Path) -> None:
    """mypy --strict finds nothing wrong in a user's program, knows the types of results, and finds a wrong effort."""
    program = tmp_path / "program.py"
    program.write_text(SCRIPT)
    command = [sys.executable, "-m", "mypy", str(program)]  # with the cache and the strict settings of `make types`
    root = Path(__file__).parents[1]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600, cwd=root)
    lines = [line for line in done.stdout.splitlines() if "program.py" in line]
    assert "AssignmentList" in lines[0]
    assert "newkind.sklearn.GCD" in lines[1]
    assert "arg-type" in lines[2]
    assert "effort" in lines[2]
    assert len(lines) == 3, done.stdout


def test_an_image_that_pillow_has_not_read_yet(tmp_path: Path, make_image) -> None:
    """A PIL image whose file is cut off fails when it is used, and is then unreadable."""
    from newkind.data.given_images import GivenImages
    from newkind.errors import BrokenImage

    content = make_image(tmp_path / "a.jpg", size=(64, 64)).read_bytes()
    cut_off = Image.open(io.BytesIO(content[: len(content) // 2]))
    with pytest.raises(BrokenImage):
        GivenImages.named([cut_off]).open(0)


def test_the_notebook_was_executed_and_still_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import json

    path = Path(__file__).parents[1] / "examples" / "discover.ipynb"
    cells = [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    assert not any(output["output_type"] == "error" for cell in cells for output in cell["outputs"])
    monkeypatch.setenv("NEWKIND_CACHE", str(tmp_path))
    names: dict[str, object] = {}
    for cell in cells:
        exec("".join(cell["source"]).replace("verbose=True", "verbose=False"), names)
    found = names["found"]
    assert found.all > 0.8  # type: ignore[attr-defined]


def test_progress_in_a_notebook() -> None:
    """Cells run in a real kernel where one is installed: one line that changes, and nothing that looks like an error."""
    nbclient = pytest.importorskip("nbclient", reason="notebooks are executed with the extra `notebook` and nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    code = (
        "from newkind.progress import progress_bar, show_messages\n"
        "with show_messages(), progress_bar('Reading', 4) as advance:\n    advance(1)\n    advance(3)\n"
    )
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    nbclient.NotebookClient(book, timeout=240).execute()
    outputs = [output for output in book.cells[0].outputs if output.get("name") != "stderr"]
    assert [output["data"]["text/plain"] for output in outputs] == ["Reading: 4 of 4 images."]
