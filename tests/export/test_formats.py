"""Every export is read back, by the library that it is meant for where that is installed."""

import csv
import io
import json
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest
from camtrap_schemas import PROFILE, SCHEMAS
from exported_run import TIMEZONE
from PIL import Image
from torchvision.datasets import ImageFolder

from error_codes import raises
from newkind.data import open_data
from newkind.discovery import Discovery
from newkind.errors import ConfigError, DataError, RunError
from newkind.export.camtrap_dp import COLUMNS
from newkind.export.formats import FORMATS
from newkind.runs.metadata import RunMetadata, metadata_csv
from painted_run import write_run


def rows_of(text: str, delimiter: str = ",") -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text), delimiter=delimiter))


def expected(run: Discovery) -> dict[str, tuple[str, str]]:
    """Category and status of every image."""
    return {line.file: (line.category, line.status) for line in run.assignments}


def test_csv_has_every_image_with_its_decisions_and_metadata(exported: Discovery, tmp_path: Path) -> None:
    rows = rows_of(exported.export(tmp_path / "a.csv").read_text())
    assert {row["file"]: (row["category"], row["status"]) for row in rows} == expected(exported)
    assert {row["category_id"] for row in rows if row["category"] == "Pyrus communis"} == {"new-01"}
    assert {row["reviewed"] for row in rows if row["status"] in ("labelled", "approved", "junk")} == {"yes"}
    assert {row["reviewed"] for row in rows if row["status"] in ("known", "new", "unsure")} == {"no"}
    assert [row["status note"] for row in rows] == [f"note, {i}" for i in range(48)]


def test_folders_contain_every_image_and_say_where(exported: Discovery, tmp_path: Path) -> None:
    out = exported.export(tmp_path / "out", format="folders", mode="symlink")
    rows = rows_of((out / "items.csv").read_text())
    data = Path(exported.run.config()["root"])
    assert len({row["placed"] for row in rows}) == 48
    for row in rows:
        assert (out / row["placed"]).resolve() == (data / row["file"]).resolve()
    assert {row["placed"].split("/")[0] for row in rows if row["status"] == "junk"} == {"junk"}


def test_imagefolder_is_read_by_torchvision_and_by_newkind(exported: Discovery, tmp_path: Path) -> None:
    out = exported.export(tmp_path / "out", format="imagefolder", mode="copy")
    found = ImageFolder(str(out / "train"))
    n_without = sum(not category for category, _ in expected(exported).values())
    assert len(found) == 48 - n_without
    assert "Pyrus communis" in found.classes
    again = open_data(out / "train")
    names = {row["file_name"]: row for row in rows_of((out / "train" / "metadata.csv").read_text())}
    labels = [again.catalog.class_names[k] for k in again.catalog.labels]
    assert dict(zip(again.catalog.items.names, labels, strict=True)) == {k: row["label"] for k, row in names.items()}
    assert len(rows_of((out / "unassigned" / "metadata.csv").read_text())) == n_without


def test_coco_is_read_by_pycocotools(exported: Discovery, tmp_path: Path) -> None:
    coco = pytest.importorskip("pycocotools.coco")
    found = coco.COCO(str(exported.export(tmp_path / "c.json", format="coco")))
    names = {row["id"]: row["name"] for row in found.loadCats(found.getCatIds())}
    answers = expected(exported)
    own = {row["file"]: row for row in found.loadAnns(found.getAnnIds())}
    assert {file: names[row["category_id"]] for file, row in own.items()} == {
        file: category for file, (category, _) in answers.items() if category
    }
    assert {row["file"] for row in found.dataset["unassigned"]} == {file for file in answers if not answers[file][0]}
    assert len(found.getImgIds()) == 48
    first = next(iter(own.values()))
    assert first["bbox"] == [0, 0, 40, 30]
    assert first["metadata"]["site"] == "cam0"


def test_label_studio_has_predictions_and_annotations(exported: Discovery, tmp_path: Path) -> None:
    out = exported.export(tmp_path / "ls.json", format="labelstudio", image_url="https://images.example/")
    tasks = {task["data"]["newkind_file"]: task for task in json.loads(out.read_text())}
    assert set(tasks) == set(expected(exported))
    choices = {node.get("value") for node in ElementTree.parse(out.with_suffix(".xml")).iter("Choice")}
    for line in exported.assignments:
        task = tasks[line.file]
        assert ("annotations" in task) == (line.status in ("labelled", "approved", "junk"))
        answer = (task.get("annotations") or task.get("predictions") or [{"result": []}])[0]["result"]
        given = [region["value"]["choices"] for region in answer]
        assert given == ([[line.category]] if line.category else [["junk"]] if line.status == "junk" else [])
        assert all(choice in choices for (choice,) in given)
        assert task["data"]["image"].startswith("https://images.example/")


def test_fiftyone_labels_are_found_by_unique_stems(exported: Discovery, tmp_path: Path) -> None:
    out = exported.export(tmp_path / "out", format="fiftyone", mode="copy")
    content = json.loads((out / "labels.json").read_text())
    stems = [path.stem for path in (out / "data").iterdir()]
    assert len(stems) == 48
    assert set(stems) == set(content["labels"])
    found = {row["attributes"]["file"]: row["label"] for row in content["labels"].values() if row}
    assert found == {file: category for file, (category, _) in expected(exported).items() if category}
    assert set(found.values()) <= set(content["classes"])


def test_ecotaxa_table_has_types_and_images(exported: Discovery, tmp_path: Path) -> None:
    out = exported.export(tmp_path / "out", format="ecotaxa", mode="copy", timezone=TIMEZONE)
    assert (out / "ecotaxa_items.tsv").read_bytes().startswith(b"\xef\xbb\xbf")  # otherwise it is read as Latin-1
    kinds, *rows = rows_of((out / "ecotaxa_items.tsv").read_text("utf-8-sig"), "\t")
    assert set(kinds.values()) == {"[t]", "[f]"}
    assert len({row["object_id"] for row in rows}) == 48
    for row in rows:
        assert (out / row["img_file_name"]).is_file()
        category, status = expected(exported)[row["object_newkind_file"]]
        assert row["object_annotation_category"] == category
        reviewed = status in ("labelled", "approved")
        assert row["object_annotation_status"] == (("validated" if reviewed else "predicted") if category else "")
        for name, kind in kinds.items():
            if kind == "[f]" and row[name]:
                float(row[name])
    assert rows[0]["object_date"] == "20240501"
    assert all(name.startswith(("object_", "img_", "sample_", "acq_", "process_")) for name in kinds)


def test_ecotaxa_gets_what_its_importer_takes(tmp_path: Path) -> None:
    """Images in JPEG, PNG or GIF, and at most 20 columns of text with at most 250 characters."""
    run = write_run(tmp_path / "run", tmp_path / "data", n_each=6)
    found = Discovery(run)
    webp = found.answer.files[-1]
    path = tmp_path / "data" / webp
    with Image.open(path) as image:
        image.save(path, "webp")  # whatever its suffix says
    columns = tuple(f"column {i}" for i in range(30))
    rows = {file: tuple("x" * 300 for _ in columns) for file in found.answer.files}
    run.write_text(run.metadata_file, metadata_csv(found.answer.files, RunMetadata(columns, rows)))
    out = found.export(tmp_path / "out", format="ecotaxa", mode="symlink")
    kinds, *rows = rows_of((out / "ecotaxa_items.tsv").read_text("utf-8-sig"), "\t")
    fixed = ("object_id", "object_annotation_category", "object_annotation_status")
    assert sum(kind == "[t]" and name.startswith("object_") and name not in fixed for name, kind in kinds.items()) == 20
    assert max(len(value) for row in rows for value in row.values()) == 250
    for row in rows:
        with Image.open(out / row["img_file_name"]) as image:
            assert image.format in ("JPEG", "PNG", "GIF")
        assert (out / row["img_file_name"]).is_symlink() == (row["object_newkind_file"] != webp)


def test_camtrap_dp_is_valid_for_frictionless(exported: Discovery, tmp_path: Path) -> None:
    frictionless = pytest.importorskip("frictionless")
    jsonschema = pytest.importorskip("jsonschema")
    out = exported.export(tmp_path / "out", format="camtrap-dp", timezone=TIMEZONE)
    package = json.loads((out / "datapackage.json").read_text())
    validator = jsonschema.Draft4Validator(PROFILE, format_checker=jsonschema.FormatChecker())
    assert [error.message for error in validator.iter_errors(package)] == []
    assert {name: [field["name"] for field in schema["fields"]] for name, schema in SCHEMAS.items()} == COLUMNS
    for resource in package["resources"]:
        assert resource["schema"].endswith(f"1.0.2/{resource['name']}-table-schema.json")
        resource["schema"] = SCHEMAS[resource["name"]]
    package.pop("profile")  # an address
    report = frictionless.Package.from_descriptor(package, basepath=str(out)).validate()
    assert report.valid, report.flatten(["type", "message"])[:5]
    rows = rows_of((out / "observations.csv").read_text())
    assert len(rows) == 48
    assert {row["scientificName"] for row in rows} >= {"apple", "Pyrus communis", ""}
    assert all(row["scientificName"] != "new-02" for row in rows)


def test_darwin_core_archive_is_complete(exported: Discovery, tmp_path: Path) -> None:
    out = exported.export(tmp_path / "d.zip", format="darwin-core", timezone=TIMEZONE)
    with zipfile.ZipFile(out) as archive:
        texts = {name: archive.read(name).decode() for name in archive.namelist()}
    meta, _ = (ElementTree.fromstring(texts[name]) for name in ("meta.xml", "eml.xml"))
    space = "{http://rs.tdwg.org/dwc/text/}"
    for part in ("core", "extension"):
        table = meta.find(f"{space}{part}")
        header, *rows = csv.reader(io.StringIO(texts[table.find(f"{space}files/{space}location").text]))
        terms = {int(field.get("index")): field.get("term").rpartition("/")[2] for field in table.iter(f"{space}field")}
        assert all(header[index] == term for index, term in terms.items())
        n_with = sum(bool(category) for category, _ in expected(exported).values())
        assert len(rows) == n_with
    assert len(rows_of(texts["items.csv"])) == 48


def test_darwin_core_archives_of_one_run_have_the_same_bytes(
    exported: Discovery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = exported.export(tmp_path / "a.zip", format="darwin-core", timezone=TIMEZONE)
    monkeypatch.setattr("time.time", lambda: 2e9)
    second = exported.export(tmp_path / "b.zip", format="darwin-core", timezone=TIMEZONE)
    assert first.read_bytes() == second.read_bytes()


def test_darwin_core_archive_is_read_by_its_reader(exported: Discovery, tmp_path: Path) -> None:
    reader = pytest.importorskip("dwca.read")
    out = exported.export(tmp_path / "d.zip", format="darwin-core", timezone=TIMEZONE)
    with reader.DwCAReader(str(out)) as archive:
        assert archive.descriptor.core.type.endswith("Occurrence")
        names = {row.data["http://rs.tdwg.org/dwc/terms/verbatimIdentification"] for row in archive}
        assert names == {category for category, _ in expected(exported).values() if category}
        assert all(len(row.extensions) == 1 for row in archive)


@pytest.mark.parametrize("name", sorted(set(FORMATS) - {"onnx"}))
def test_nothing_is_overwritten(exported: Discovery, tmp_path: Path, name: str) -> None:
    chosen = FORMATS[name]
    out = tmp_path / f"out{chosen.suffix}"
    if chosen.suffix:
        out.write_text("precious")
    else:
        out.mkdir()
        (out / "precious").write_text("precious")
    with raises(RunError, "exists"):
        exported.export(out, format=name, mode="copy", timezone=TIMEZONE)
    assert (out if chosen.suffix else out / "precious").read_text() == "precious"
    assert list(tmp_path.iterdir()) == [out]


def test_options_that_do_not_fit(exported: Discovery, tmp_path: Path) -> None:
    for code, error, given in (
        ("unknown-format", ConfigError, {"format": "pdf"}),
        ("missing-mode", ConfigError, {"format": "folders"}),
        ("unknown-choice", ConfigError, {"format": "folders", "mode": "move"}),
        ("wrong-suffix", ConfigError, {"format": "coco"}),
        ("unknown-role", ConfigError, {"format": "camtrap-dp", "columns": {"colour": "lat"}}),
        ("missing-column", ConfigError, {"format": "camtrap-dp", "columns": {"latitude": "altitude"}}),
        ("missing-timezone", DataError, {"format": "camtrap-dp"}),
        ("timezone", ConfigError, {"format": "camtrap-dp", "timezone": "Berlin"}),
        ("invalid-time", DataError, {"format": "camtrap-dp", "columns": {"timestamp": "site"}, "timezone": "Z"}),
        ("invalid-coordinate", DataError, {"format": "camtrap-dp", "columns": {"latitude": "site"}, "timezone": "Z"}),
        (
            "conflicting-coordinates",
            DataError,
            {"format": "camtrap-dp", "columns": {"deployment": "lon"}, "timezone": "Z"},
        ),
    ):
        with raises(error, code):
            exported.export(tmp_path / "out", **given)
    assert not list(tmp_path.iterdir())


def test_images_that_are_gone(exported: Discovery, tmp_path: Path) -> None:
    with raises(RunError, "missing-file"):
        exported.export(tmp_path / "c.json", format="coco", data=tmp_path)
    assert not list(tmp_path.iterdir())
