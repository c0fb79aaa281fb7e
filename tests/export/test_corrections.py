"""Out to Label Studio or EcoTaxa and back: what a person corrected there becomes decisions; everything else stays."""

import csv
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from exported_run import make_run
from hypothesis import given, settings
from hypothesis import strategies as st

from error_codes import raises
from newkind.discovery import Discovery
from newkind.errors import ConfigError, DataError, NewkindError
from newkind.export.corrected_items import Correction
from newkind.export.corrections import plan_corrections
from newkind.export.label_studio import NAME
from newkind.export.read_ecotaxa import read_ecotaxa
from newkind.export.read_label_studio import read_label_studio

Correct = Callable[[Path, dict[str, str]], None]


def in_label_studio(path: Path, answers: dict[str, str]) -> None:
    """Annotate tasks as the program does: other tasks keep their predictions."""
    tasks = json.loads(path.read_text())
    for number, task in enumerate(tasks, start=1):
        task["id"] = number
        if task["data"]["newkind_file"] in answers:
            choice = {"choices": [answers[task["data"]["newkind_file"]]]}
            region = {"id": "x1", "from_name": NAME, "to_name": "image", "type": "choices", "value": choice}
            task["annotations"] = [{"id": number, "completed_by": 1, "was_cancelled": False, "result": [region]}]
    path.write_text(json.dumps(tasks))


def in_ecotaxa(path: Path, answers: dict[str, str]) -> None:
    """Validate objects as the program does. Its export starts with a byte order mark, and texts are in quotation marks."""
    rows = list(csv.DictReader(io.StringIO(path.read_text("utf-8-sig")), delimiter="\t"))[1:]
    for row in rows:
        if row["object_newkind_file"] in answers:
            row["object_annotation_category"] = answers[row["object_newkind_file"]]
            row["object_annotation_status"] = "validated"
        row["object_newkind_event"] = float(row["object_newkind_event"])
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter="\t", lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
        writer.writeheader()
        writer.writerows(rows)


@pytest.fixture
def run(tmp_path: Path) -> Discovery:
    return make_run(tmp_path)


def exported(run: Discovery, folder: Path, format: str) -> Path:
    if format == "labelstudio":
        return run.export(folder / "tasks.json", format=format)
    return run.export(folder / "eco", format=format, mode="copy", timezone="Z") / "ecotaxa_items.tsv"


@pytest.mark.parametrize(("format", "correct"), [("labelstudio", in_label_studio), ("ecotaxa", in_ecotaxa)])
def test_round_trip(run: Discovery, tmp_path: Path, format: str, correct: Correct) -> None:
    path = exported(run, tmp_path, format)
    assert not plan_corrections(run.run, path, format=format).decisions  # nothing was corrected
    before = {line.file: line for line in run.assignments}
    plums = run["new-02"].images
    pears = [file for file in run["new-01"].images if before[file].status == "new"]
    answers = dict.fromkeys(plums, "Prunus") | {pears[0]: "Pyrus communis", pears[1]: "apple", pears[2]: "quince"}
    if format == "labelstudio":
        answers |= {pears[3]: "junk"}
    correct(path, answers)
    run.rename("new-01", "pear tree")  # between export and return
    run.apply(path, format=format)
    after = {line.file: line for line in run.assignments}
    assert run["new-02"].name == "Prunus"
    assert {after[file].status for file in plums} <= {"approved", "labelled"}
    assert (after[pears[0]].category, after[pears[0]].status) == ("pear tree", "approved")
    assert (after[pears[1]].category, after[pears[1]].status) == ("apple", "approved")
    assert (after[pears[2]].category, after[pears[2]].status) == ("quince", "approved")
    if format == "labelstudio":
        assert after[pears[3]].status == "junk"
    for file in set(before) - set(answers):
        assert after[file].status == before[file].status
    last = run.answer.last
    assert run.apply(path, format=format) == []  # once more changes nothing
    assert run.answer.last == last


@pytest.mark.parametrize(("format", "correct"), [("labelstudio", in_label_studio), ("ecotaxa", in_ecotaxa)])
def test_decisions_after_the_export_stay(run: Discovery, tmp_path: Path, format: str, correct: Correct) -> None:
    """Only what was changed in the other program is a correction."""
    kept, changed, fresh = run["new-02"].images[:3]
    junk = next(line.file for line in run.assignments if line.status == "junk")
    run.approve(files=[kept, changed])
    path = exported(run, tmp_path, format)
    correct(path, {changed: "apple", fresh: "new-02"})
    run.move([kept, changed, fresh, junk], "Pyrus communis")
    run.rename("new-02", "plum")
    plan = plan_corrections(run.run, path, format=format)
    assert {(d.kind, d.files, d.into) for d in plan.decisions} == {
        ("move", (changed,), "apple"),
        ("move", (fresh,), "new-02"),  # it was not reviewed before, so that this is an answer of a person
    }
    assert plan.n_unchanged > 0
    run.apply(path, format=format)
    after = {line.file: line.category for line in run.assignments}
    assert [after[file] for file in (kept, changed, fresh, junk)] == [
        "Pyrus communis",
        "apple",
        "plum",
        "Pyrus communis",
    ]
    assert run.apply(path, format=format) == []


def test_the_same_corrections_again_write_what_a_full_disk_had_kept_back(run: Discovery, tmp_path: Path) -> None:
    path = exported(run, tmp_path, "labelstudio")
    run.rename("new-01", "pear")  # so that both files are those of decisions
    files = [run.run.assignments_file, run.run.categories_file]
    before = [file.read_bytes() for file in files]
    in_label_studio(path, dict.fromkeys(run["new-02"].images, "Prunus"))
    run.apply(path, format="labelstudio")
    after = [file.read_bytes() for file in files]
    for file, content in zip(files, before, strict=True):
        file.write_bytes(content)
    assert run.apply(path, format="labelstudio") == []
    assert [file.read_bytes() for file in files] == after != before


def test_contradicting_and_unknown_items_are_left_out_and_named(run: Discovery, tmp_path: Path) -> None:
    path = exported(run, tmp_path, "labelstudio")
    first, second = [line.file for line in run.assignments if line.status == "new"][:2]
    in_label_studio(path, {first: "apple", second: "apple"})
    tasks = json.loads(path.read_text())
    for task in tasks:
        if task["data"]["newkind_file"] == first:
            other = json.loads(json.dumps(task["annotations"][0]))
            other["result"][0]["value"]["choices"] = ["new-02"]
            task["annotations"].append(other)
    tasks.append({"data": {"newkind_file": "elsewhere.png"}, "annotations": tasks[0]["annotations"]})
    path.write_text(json.dumps(tasks))
    plan = plan_corrections(run.run, path, format="labelstudio")
    assert plan.contradicting == [first]
    assert plan.unknown == ["elsewhere.png"]
    assert [decision.files for decision in plan.decisions] == [(second,)]


LABEL_STUDIO: dict[str, tuple[Any, str]] = {
    "not a list": ({}, "invalid-file"),
    "a list of numbers": ([1], "invalid-file"),
    "no file name": ([{"data": {}}], "invalid-file"),
    "a number as name": ([{"data": {"newkind_file": 3}}], "invalid-file"),
    "annotations as text": ([{"data": {"newkind_file": "a"}, "annotations": "x"}], "invalid-file"),
    "no value": (
        [{"data": {"newkind_file": "a"}, "annotations": [{"result": [{"type": "choices", "from_name": NAME}]}]}],
        "invalid-file",
    ),
    "two choices": (
        [
            {
                "data": {"newkind_file": "a"},
                "annotations": [{"result": [{"type": "choices", "from_name": NAME, "value": {"choices": ["a", "b"]}}]}],
            }
        ],
        "invalid-file",
    ),
    "other images": ([{"newkind_file": "elsewhere.png", NAME: "apple"}], "no-known-images"),
}


@pytest.mark.parametrize("name", LABEL_STUDIO)
def test_bad_files_of_label_studio(run: Discovery, tmp_path: Path, name: str) -> None:
    content, code = LABEL_STUDIO[name]
    (tmp_path / "bad.json").write_text(json.dumps(content))
    last = run.answer.last
    with raises(DataError, code):
        run.apply(tmp_path / "bad.json", format="labelstudio")
    assert run.answer.last == last


HEADER = "object_newkind_file\tobject_annotation_category\tobject_annotation_status\tobject_newkind_event"
ECOTAXA = {
    "empty": ("", "invalid-file"),
    "other columns": ("a\tb\n1\t2\n", "missing-column"),
    "a short line": (f"{HEADER}\na.png\tx\n", "invalid-file"),
    "an unknown status": (f"{HEADER}\na.png\tx\tperhaps\t1\n", "invalid-file"),
    "no category": (f"{HEADER}\na.png\t\tvalidated\t1\n", "invalid-file"),
    "no number": (f"{HEADER}\na.png\tx\tvalidated\tone\n", "invalid-file"),
    "other images": (f"{HEADER}\nelsewhere.png\tx\tvalidated\t1\n", "no-known-images"),
}


@pytest.mark.parametrize("name", ECOTAXA)
def test_bad_files_of_ecotaxa(run: Discovery, tmp_path: Path, name: str) -> None:
    content, code = ECOTAXA[name]
    (tmp_path / "bad.tsv").write_text(content)
    with raises(DataError, code):
        run.apply(tmp_path / "bad.tsv", format="ecotaxa")


def test_other_ways_in_which_ecotaxa_writes(tmp_path: Path) -> None:
    """Latin-1 and decimal commas are options of its export; objects can be discarded."""
    path = tmp_path / "export.tsv"
    path.write_bytes(f'{HEADER}\n"a.png"\t"Bärtierchen"\t"validated"\t3,0\nb.png\tx\tdiscarded\t\n'.encode("latin-1"))
    assert read_ecotaxa(path) == [Correction("a.png", "Bärtierchen", 3)]


def test_files_that_are_no_tables(run: Discovery, tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00\x81")
    with zipfile.ZipFile(tmp_path / "none.zip", "w") as archive:
        archive.writestr("readme.md", "nothing")
    for file, format, code in (
        ("bytes", "ecotaxa", "missing-column"),
        ("none.zip", "ecotaxa", "invalid-file"),
        ("bytes", "labelstudio", "invalid-file"),
        ("missing", "labelstudio", "missing-file"),
        ("missing", "ecotaxa", "missing-file"),
    ):
        with raises(DataError, code):
            run.apply(tmp_path / file, format=format)
    with raises(ConfigError, "unknown-format"):
        run.apply(tmp_path / "bytes", format="csv")


def code_of(read: Callable[[Path], list[Correction]], path: Path) -> str:
    """Code of the error with which a reader refuses a file; empty if it reads it."""
    try:
        found = read(path)
    except NewkindError as error:
        return error.code
    assert all(correction.file is not None and correction.category for correction in found)
    return ""


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["data", "newkind_file", "newkind_event", "annotations", "result", "type", "value", "choices", NAME]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(values)
@settings(max_examples=150, deadline=None)
def test_any_json_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: Any) -> None:
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_text(json.dumps(content))
    assert code_of(read_label_studio, path) in ("", "invalid-file")


@given(st.binary(max_size=60), st.booleans())
@settings(max_examples=150, deadline=None)
def test_any_bytes_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, with_header: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.tsv"
    path.write_bytes((HEADER.encode() + b"\n" if with_header else b"") + content)
    assert code_of(read_ecotaxa, path) in ("", "invalid-file", "missing-column")
