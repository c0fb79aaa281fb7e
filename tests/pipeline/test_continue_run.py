"""A run that continues another one: images by content, decisions, stable ids, new categories, interruptions."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import newkind
from coloured_pictures import make_data, make_more, make_run, paint
from error_codes import raises
from newkind import atomic
from newkind.discovery import Discovery
from newkind.errors import ConfigError, DataError, RunError
from newkind.export.sorting import plan_run, sort_images
from newkind.pipeline.refit import plan_refit
from newkind.report.contents import outcome_contents, read_contents
from newkind.report.images import find_run_images
from newkind.report.since import since_of
from newkind.report.write import write_report
from newkind.review.workbench import ReviewOptions, Workbench
from newkind.runs.assignments import read_assignments
from newkind.runs.decision_log import DecisionLog
from newkind.runs.metadata import read_groups, read_metadata
from newkind.runs.run import Run

Continue = Callable[..., Discovery]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEWKIND_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def found(tmp_path: Path) -> Discovery:
    return make_run(make_data(tmp_path / "data"), tmp_path / "run")


@pytest.fixture
def more(tmp_path: Path) -> Path:
    return make_more(tmp_path / "march")


@pytest.fixture
def proceed(tmp_path: Path, found: Discovery) -> Continue:
    """Continue the run."""

    def call(out: str = "run2", **options: Any) -> Discovery:
        return newkind.continue_run(found.run.folder, tmp_path / out, **{"report": False, "device": "cpu"} | options)

    return call


def category_of(found: Discovery, colour: str) -> str:
    """Id of the category that has the unlabelled pictures of a colour."""
    answer = found.answer
    own = [k for k, name in zip(answer.category, answer.files, strict=True) if colour in Path(name).name]
    numbers, counts = np.unique(own, return_counts=True)
    assert counts.max() == len(own)
    return answer.categories[numbers[0]].id


def test_names_stay_and_a_new_category_opens(found: Discovery, proceed: Continue, more: Path) -> None:
    blue, grey = category_of(found, "blue"), category_of(found, "grey")
    found.rename(blue, "Blau")
    after = proceed(add=more, n_categories=5)
    assert category_of(after, "blue") == blue
    assert after[blue].name == "Blau"
    assert after[blue].status == "known"
    assert category_of(after, "grey") == grey
    assert after[grey].status == "new"
    assert category_of(after, "yellow") == "new-03"
    assert len(after.assignments) == 48 + 20
    since = since_of(read_contents(after.run))
    assert since is not None
    assert (since.n_added, since.n_opened, since.n_moved, since.n_missing) == (20, 1, 0, 0)
    assert [growth.n_added for growth in since.grown] == [12, 2, 2, 2, 2]
    assert [growth.n_before for growth in since.grown] == [0, 12, 12, 12, 12]


def test_the_number_of_new_categories_is_estimated(proceed: Continue, more: Path, tmp_path: Path) -> None:
    assert category_of(proceed(add=more), "yellow") == "new-03"
    few = make_more(tmp_path / "april", n_yellow=0)
    after = proceed("run3", add=few)
    assert {category.id for category in after.categories} == {"red", "green", "new-01", "new-02"}


def test_only_new_images_pass_the_backbone(
    proceed: Continue, found: Discovery, more: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Even without the cache, and with all files moved and renamed."""
    shutil.rmtree(tmp_path / "cache")
    blue = category_of(found, "blue")
    (tmp_path / "data").rename(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "unlabelled" / "blue00.png").rename(
        tmp_path / "elsewhere" / "unlabelled" / "new name.png"
    )
    (tmp_path / "elsewhere" / "unlabelled" / "grey00.png").unlink()
    caplog.set_level("INFO")
    after = proceed(add=[more], data=tmp_path / "elsewhere")
    assert "47 images known, 20 new, 1 missing" in caplog.text
    assert "of 20 images" in caplog.text
    assert "unlabelled/new name.png" in after[blue].images
    features, before = after.run.features(), found.run.features()
    assert features is not None
    assert before is not None
    row, old = after.answer.row["unlabelled/new name.png"], found.answer.row["unlabelled/blue00.png"]
    assert (features[row] == before[old]).all()
    assert json.loads(after.run.continued_file.read_text())["missing"] == ["unlabelled/grey00.png"]


def test_decisions_carry_over(found: Discovery, proceed: Continue, more: Path) -> None:
    blue, grey = category_of(found, "blue"), category_of(found, "grey")
    images = found[blue].images
    found.split(blue, [images[:6]])
    part = found.history()[-1].decision.ids[0]
    found.merge([part, blue], into=blue)
    found.approve(files=images[:3])
    found.junk(images[4])
    found.reject(images[5], blue)
    found.move(images[6], grey)
    found.move(found[grey].images[0], "red")
    found.approve(grey)
    found.note("look again", files=[images[7]], category=blue)
    after = proceed(add=more)
    status = dict(zip(after.answer.files, after.answer.status.tolist(), strict=True))
    assert [status[name] for name in images[:3]] == ["approved"] * 3
    assert set(images[:3]) <= set(after[blue].images)
    assert status[images[4]] == "junk"
    assert images[5] not in after[blue].images
    assert images[6] in after[grey].images
    assert found["red"].images[-1] in after["red"].images
    assert after.answer.find(part).id == blue
    assert not after[grey].approved  # it has images that nobody has seen
    assert after[grey].status == "known"
    assert [note.text for note in after.answer.notes] == ["look again"]
    known = {event.time for event in found.history()}
    assert {event.time for event in after.history()} <= known
    new = after.move(images[8]).decision.into
    assert new not in {category.id for category in found.categories} | {part}


def test_an_approved_category_without_new_images_stays_approved(found: Discovery, proceed: Continue) -> None:
    grey = category_of(found, "grey")
    found.approve(grey)
    after = proceed()
    assert after[grey].approved
    assert {line.file: line.category for line in after.assignments} == {
        line.file: line.category for line in found.assignments
    }
    approvals = [event for event in after.history() if event.decision.kind == "approve"]
    after.undo(approvals[-1].number)
    assert not after[grey].approved


def test_labels_that_were_given_since(found: Discovery, proceed: Continue, tmp_path: Path) -> None:
    blue, grey = category_of(found, "blue"), category_of(found, "grey")
    found.rename(blue, "Blau")
    data = tmp_path / "data"
    for folder, name in (("Blau", "blue01.png"), ("Stone", "grey01.png")):
        (data / folder).mkdir()
        (data / "unlabelled" / name).rename(data / folder / name)
    paint(data / "Stone" / "another.png", "grey", 77)
    (data / "red" / "red01.png").rename(data / "unlabelled" / "red01.png")
    after = proceed()
    lines = {line.file: line for line in after.assignments}
    assert (lines["Blau/blue01.png"].category, lines["Blau/blue01.png"].status) == ("Blau", "labelled")
    assert (lines["Stone/grey01.png"].category, lines["Stone/another.png"].status) == ("Stone", "labelled")
    assert lines["unlabelled/red01.png"].status == "known"
    assert after["Stone"].status == "known"
    assert grey in {category.id for category in after.categories}


def test_copies_of_known_images_are_left_out(proceed: Continue, more: Path, tmp_path: Path) -> None:
    shutil.copy(tmp_path / "data" / "unlabelled" / "blue00.png", more / "again.png")
    shutil.copy(more / "day0" / "yellow.png", more / "twice.png")
    after = proceed(add=more)
    assert len(after.assignments) == 48 + 20
    assert json.loads(after.run.continued_file.read_text())["n_copies"] == 2


def test_a_continued_run_can_be_continued(proceed: Continue, found: Discovery, more: Path, tmp_path: Path) -> None:
    after = proceed(add=more, n_categories=5)
    after.rename("new-03", "Gelb")
    april = tmp_path / "april"
    paint(april / "yellow.png", "yellow", 5000)
    paint(more / "late.png", "yellow", 5001)
    last = newkind.continue_run(after.run.folder, tmp_path / "run3", add=april, report=False, device="cpu")
    assert len(last.assignments) == 48 + 22
    assert {str(april / "yellow.png"), str(more / "late.png")} <= set(last["Gelb"].images)
    assert last["Gelb"].id == "new-03"
    assert category_of(last, "blue") == category_of(found, "blue")
    assert newkind.load(tmp_path / "run3").predict(april / "yellow.png")[0].category == "Gelb"


def test_a_repeated_call_keeps_later_decisions(proceed: Continue, found: Discovery, more: Path) -> None:
    found.rename(category_of(found, "blue"), "Blau")
    after = proceed(add=more)
    after.rename(category_of(after, "grey"), "Grau")
    before = after.assignments
    again = proceed(add=more)
    assert again.assignments == before
    assert [event.decision.name for event in again.history()] == ["Blau", "Grau"]
    found.rename(category_of(found, "grey"), "other")
    with raises(RunError, "other-run"):
        proceed(add=more)


class Killed(BaseException):
    """A process that ends in the middle."""


def contents(folder: Path) -> dict[str, bytes | str]:
    """Files that do not depend on the time of writing; the log as text."""
    skipped = ("report.html", "decisions.sqlite-wal", "decisions.sqlite-shm", ".lock", ".answer.lock")
    found: dict[str, bytes | str] = {
        path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and path.name not in skipped
    }
    found["decisions.sqlite"] = DecisionLog(folder).export_jsonl()
    return found


def test_interrupted_at_any_write_it_ends_the_same(
    proceed: Continue, found: Discovery, more: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found.rename(category_of(found, "blue"), "Blau")
    proceed(add=more)
    wanted = contents(tmp_path / "run2")
    replace, left = Path.replace, 0

    def stop(self: Path, target: Path) -> Path:
        nonlocal left
        left -= 1
        if left < 0:
            raise Killed
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", stop)
    n_stops = 0
    while True:
        left = n_stops
        try:
            proceed("run3", add=more)
            break
        except Killed:
            n_stops += 1
            left = 10**6
    monkeypatch.setattr(Path, "replace", replace)
    assert n_stops > 10
    assert contents(tmp_path / "run3") == wanted
    assert not list((tmp_path / "run3").glob(f"*{atomic.PARTIAL}"))
    assert newkind.load(tmp_path / "run3")["Blau"].images


def test_a_run_without_digests_is_continued_by_paths(
    proceed: Continue, found: Discovery, more: Path, caplog: pytest.LogCaptureFixture
) -> None:
    found.run.digests_file.unlink()
    caplog.set_level("INFO")
    after = proceed(add=more)
    assert "paths" in caplog.text
    assert after.run.digests() is not None
    assert json.loads(after.run.continued_file.read_text())["missing"] == []


def test_bad_input(proceed: Continue, found: Discovery, more: Path, tmp_path: Path) -> None:
    with raises(DataError, "overlapping-folders"):
        proceed(add=tmp_path / "data" / "unlabelled")
    with raises(DataError, "overlapping-folders"):
        proceed(add=[more, more])
    with raises(DataError, "overlapping-folders"):
        proceed(add=tmp_path)
    with raises(DataError, "missing-file"):
        proceed(add=tmp_path / "nothing")
    with raises(ConfigError, "other-backbone"):
        proceed(add=more, backbone="vit_small_patch14_dinov2.lvd142m")
    with raises(ConfigError, "other-settings"):
        proceed(add=more, epochs=3)
    with raises(ConfigError, "too-few-categories"):
        proceed("few", add=more, n_categories=2)
    with raises(ConfigError, "too-many-categories"):
        proceed("many", add=more, n_categories=40)
    with raises(ConfigError, "same-folder"):
        proceed("run", add=more, overwrite=True)
    with raises(DataError, "no-known-images"):
        proceed(data=more)
    assert not (tmp_path / "run2").exists()
    assert found.assignments


def test_a_run_that_is_not_finished_or_of_features(tmp_path: Path, proceed: Continue, found: Discovery) -> None:
    np.savez(
        tmp_path / "clouds.npz", features=np.random.default_rng(0).normal(size=(40, 8)), labels=[0, 1, -1, -1] * 10
    )
    newkind.discover(tmp_path / "clouds.npz", tmp_path / "clouds", n_categories=3, report=False)
    with raises(DataError, "not-images"):
        newkind.continue_run(tmp_path / "clouds", tmp_path / "out")
    found.run.update_config(answer="first")
    with raises(RunError, "not-finished"):
        proceed()
    found.run.assignments_file.unlink()
    with raises(RunError, "not-finished"):
        proceed()


def test_the_report_says_what_is_new(proceed: Continue, found: Discovery, more: Path) -> None:
    after = proceed(add=more, report=True)
    text = after.run.report_file.read_text()
    assert 'id="since"' in text
    assert after.outcome is not None
    assert since_of(outcome_contents(after.outcome)) == since_of(read_contents(after.run))
    text = write_report(after.run, compare=found.run).read_text()
    assert 'id="comparison"' in text
    assert "matched by their paths" not in text
    found.run.digests_file.unlink()
    assert "matched by their paths" in write_report(after.run, compare=found.run).read_text()
    assert since_of(read_contents(Run.open(found.run.folder))) is None


def test_the_data_is_read_as_the_run_read_it(tmp_path: Path) -> None:
    """Named columns, the folder of the images, groups and further columns; a table that is added has the same columns."""
    make_data(tmp_path / "data")
    names = sorted(str(path.relative_to(tmp_path / "data")) for path in (tmp_path / "data").rglob("*.png"))
    table, more = tmp_path / "photos.csv", tmp_path / "more.csv"

    def line(name: str) -> str:
        known = name.split("/")[0] if not name.startswith("unlabelled") else ""
        return f"{name},{known},wrong{len(name) % 2},{Path(name).stem[:-1]},site"

    table.write_text("\n".join(["picture,kind,label,burst,place", *map(line, names)]) + "\n")
    options = {"file_column": "picture", "label_column": "kind", "group_column": "burst"}
    small = {"backbone": "vit_tiny_patch16_224", "random_weights": True, "image_size": 32, "device": "cpu"}
    made = newkind.discover(
        table,
        tmp_path / "run",
        image_folder=tmp_path / "data",
        **options,
        **small,
        n_categories=4,
        effort="quick",
        report=False,
    )
    paint(tmp_path / "yellow.png", "yellow", 7)
    more.write_text("picture,kind,label,burst\nyellow.png,red,wrong1,y\n")
    after = newkind.continue_run(made.run.folder, tmp_path / "run2", add=more, report=False, device="cpu")
    assert {category.id for category in after.categories} == {"red", "green", "new-01", "new-02"}
    rows = {line.file: line for line in after.assignments}
    assert rows[str(tmp_path / "yellow.png")].status == "labelled"
    config = after.run.config()
    assert config["reading"] == made.run.config()["reading"]
    assert config["group_column"] == "burst"
    metadata = read_metadata(after.run)
    assert metadata.of(names[0])[metadata.columns.index("burst")] == Path(names[0]).stem[:-1]
    groups = read_groups(after.run, after.answer.files)
    assert groups is not None
    for number in set(groups.tolist()):  # images of a group share a category
        assert len(set(after.answer.category[groups == number].tolist())) == 1
    (tmp_path / "data").rename(tmp_path / "elsewhere")
    again = newkind.continue_run(
        after.run.folder, tmp_path / "run3", image_folder=tmp_path / "elsewhere", report=False, device="cpu"
    )
    assert again.answer.files == after.answer.files


def test_damaged_features_and_digests_are_noticed(found: Discovery, proceed: Continue, more: Path) -> None:
    """One changed byte that leaves a valid array; a run without checksums, of an earlier version, is not checked."""
    for path in (found.run.digests_file, found.run.features_file):
        content = bytearray(path.read_bytes())
        content[-1] ^= 0x40
        path.write_bytes(content)
    assert found.run.features() is None
    assert found.run.digests() is None
    with raises(RunError, "damaged-features"):
        proceed(add=more)
    with raises(RunError, "damaged-features"):
        plan_refit(found.run)
    found.run.update_config(checksums={})
    assert found.run.features() is not None


def test_all_images_are_found_where_they_were_and_where_they_are_now(
    proceed: Continue, more: Path, tmp_path: Path
) -> None:
    run = proceed(add=more).run
    lines = read_assignments(run)
    assert sum(line.file.startswith(str(more)) for line in lines) > 0  # added images have absolute names

    def check(data: Path | None, to: str) -> None:
        plan = plan_run(run, tmp_path / to, "copy", data=data)
        assert sort_images(plan, advance=lambda _: None) == len(lines)
        bench = Workbench(run, ReviewOptions(data=data))
        assert [bench.originals.problem(i) for i in range(len(lines)) if bench.originals.problem(i)] == []
        bench.close()
        images = find_run_images(read_contents(run), data=data)
        assert images.is_there.all()
        assert images.note == ""

    check(None, "sorted-1")
    check(tmp_path, "sorted-2")  # contains both folders
    moved = tmp_path / "disk"
    for folder in (tmp_path / "data", more):
        shutil.move(folder, moved / folder.name)
    check(moved, "sorted-3")


def test_images_outside_all_folders_of_a_continued_run_are_not_shown(
    proceed: Continue, more: Path, tmp_path: Path
) -> None:
    run = proceed(add=more).run
    first = next(more.rglob("*.png"))
    content = first.read_bytes()
    first.unlink()
    (tmp_path / "elsewhere.png").write_bytes(content)
    first.symlink_to(tmp_path / "elsewhere.png")
    bench = Workbench(run, ReviewOptions())
    row = bench.snapshot.answer.row[str(first)]
    assert bench.originals.problem(row) == "outside the data folder"
    bench.close()
