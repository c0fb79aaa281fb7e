"""Every reader of a file from elsewhere, with a sound file to damage. A reader may raise only the errors of Newkind."""

from __future__ import annotations

import io
import json
import pickle
import random
import shutil
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import torch
from command_line import newkind
from exchanged_files import exchanged_files
from PIL import Image
from safetensors.torch import save as save_tensors
from small_runs import SmallRuns
from starlette.exceptions import HTTPException

from newkind.backbone.cache_folders import list_caches, verify_cache
from newkind.backbone.onnx_weights import read_onnx
from newkind.backbone.weights_file import read_weights
from newkind.data import open_data, read_truth
from newkind.data.cifar import read_cifar10
from newkind.data.image_check import check_image
from newkind.data.image_files import find_images
from newkind.data.items import FileImages, Images
from newkind.data.list_files import read_rows
from newkind.data.matlab import read_matlab
from newkind.data.names import Names
from newkind.errors import NewkindError
from newkind.export.onnx_model import OnnxModel
from newkind.export.read_ecotaxa import read_ecotaxa
from newkind.export.read_label_studio import read_label_studio
from newkind.pipeline.predict_inputs import read_inputs
from newkind.report.contents import read_contents
from newkind.runs.current_answer import current_answer
from newkind.runs.decision import Decision, event_from_json
from newkind.runs.decision_log import DecisionLog
from newkind.runs.estimate_file import load_estimate
from newkind.runs.metadata import read_metadata
from newkind.runs.model_io import load_model
from newkind.runs.run import Run
from newkind.schema import InvalidJson, parse_json
from newkind.serving.requests import _from_json
from newkind.training.checkpoint import load_checkpoint

__all__ = ["Reader", "damaged", "packed_files", "readers", "try_reader"]

MARKS = [
    b"",
    b"\0",
    b"\xff" * 4,
    b"\x7f\xff\xff\xff",
    b"[" * 3000,
    b'"',
    b",",
    b"\n",
    b"-1",
    b"NaN",
    b"1e999",
    b"../..",
    b"{}",
]


@dataclass(frozen=True)
class Reader:
    """A reader: the name of its file, the content of a sound one, the function that reads it, and whether that starts a process."""

    name: str
    file: str
    content: bytes
    read: Callable[[Path], object]
    is_slow: bool = False


def damaged(content: bytes, random_numbers: random.Random) -> bytes:
    """A content with one to five random changes."""
    found = bytearray(content)
    for _ in range(random_numbers.randint(1, 5)):
        at = random_numbers.randrange(len(found) + 1)
        match random_numbers.randrange(6):
            case 0 if at < len(found):
                found[at] ^= 1 << random_numbers.randrange(8)
            case 1 if at < len(found):
                found[at] = random_numbers.randrange(256)
            case 2:
                del found[at : at + random_numbers.choice([1, 4, 50, len(found)])]
            case 3:
                found[at:at] = random_numbers.choice(MARKS)
            case 4:
                other = random_numbers.randrange(len(found) + 1)
                found[at:at] = found[other : other + 20]
            case _:
                found[at : at + 4] = random_numbers.choice(MARKS)[:4]
    return bytes(found)


def try_reader(reader: Reader, content: bytes, folder: Path) -> None:
    """Read a file with this content; errors other than those that a user can understand are raised."""
    path = folder / reader.file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    try:
        reader.read(path)
    except (NewkindError, InvalidJson):
        return


def readers(runs: SmallRuns, folder: Path) -> list[Reader]:
    """All readers; `folder` is where copies of a run are damaged."""
    run = folder / "run"
    shutil.copytree(runs.features_run, run)
    newkind(["rename", str(run), "new-01", "Samoyed"])
    table = (runs.images / "metadata.csv").read_bytes()
    rows = [json.dumps({"file_name": f"{i}.png", "label": "a", "truth": "b"}) for i in range(4)]
    estimate = {
        "n_categories": 6,
        "low": 5,
        "high": 8,
        "n_known": 3,
        "way": "clusters",
        "quality": 0.9,
        "curve": [[5, 0.5]],
    }
    layout = {"n_views": 2, "n_tokens": 4, "dim": 8}
    meta = {"format": 2, "layout": layout, "about": {"place": "x", "backbone": "y"}}
    image = (runs.images / "img" / "red0.png").read_bytes()
    shutil.copytree(runs.images / "img", folder / "img")
    event = json.dumps(DecisionLog(run).events()[0].to_json())
    found = [
        Reader("JSON", "x.json", json.dumps(estimate).encode(), lambda path: parse_json(path.read_bytes(), dict)),
        Reader("table (CSV)", "x.csv", table, open_data),
        Reader("table (JSON lines)", "x.jsonl", "\n".join(rows).encode(), open_data),
        Reader("table to predict", "new.csv", table, lambda path: read_inputs([path])),
        Reader("npy to predict", "new.npy", _npy(), lambda path: read_inputs([path])),
        Reader("true classes", "truth.csv", table, read_truth),
        Reader("table (Excel)", "x.xlsx", _excel(), open_data),
        Reader("table (Parquet)", "x.parquet", _parquet(), open_data),
        Reader("images in Parquet", "images.parquet", _parquet_images(image), _check_images),
        Reader("boxes (MegaDetector)", "found.json", _detections(), open_data),
        Reader("boxes (COCO)", "coco.json", _coco(), open_data),
        Reader("archive (tar)", "x.tar", _tar(image), open_data),
        Reader("npy", "x.npy", _npy(), lambda path: open_data(path, labels=path.parent / "labels.txt")),
        Reader("line of history", "x.event", event.encode(), lambda path: event_from_json(_text(path))),
        Reader("npz", "x.npz", runs.features.read_bytes(), open_data),
        Reader("list of images", "x.txt", b"a.png\nb.png\n", lambda path: find_images([path])),
        Reader("list file of a dataset", "images.txt", b"1 a/b.jpg\n2 a/c.jpg\n", read_rows),
        Reader("MATLAB", "x.mat", _matlab(), lambda path: read_matlab(path, "x"), is_slow=True),
        Reader("CIFAR", "cifar-10-batches-py/data_batch_1", _cifar(), lambda path: read_cifar10(path.parent)),
        Reader("weights (safetensors)", "x.safetensors", save_tensors({"x": torch.eye(3)}), read_weights),
        Reader("weights (PyTorch)", "x.pth", _pytorch(), read_weights),
        Reader("weights (ONNX)", "x.onnx", _onnx(), read_onnx),
        Reader("checkpoint", "run/checkpoint.safetensors", _checkpoint(), load_checkpoint),
        Reader(
            "estimate",
            "run/estimate-k.json",
            json.dumps(estimate).encode(),
            lambda path: load_estimate(Run(path.parent)),
        ),
        Reader("cache", "tokens/x/meta.json", json.dumps(meta).encode(), lambda _: list_caches()),
        Reader("cache, verified", "tokens/x/meta.json", json.dumps(meta).encode(), lambda _: verify_cache("x")),
        Reader("metadata", "run/metadata.csv", b"file,site\n0,A\n1,B\n", lambda path: read_metadata(Run(path.parent))),
        Reader("request", "x.request", b'{"kind": "rename", "category": "new-01", "name": "x"}', _decision),
    ]
    formats = ("png", "jpeg", "webp", "tiff", "gif", "bmp")
    found += [Reader(f"image ({kind})", f"x.{kind}", _image(kind), _decode) for kind in formats]
    (folder / "labels.txt").write_text("a\nb\n\n")
    (folder / "tokens" / "x").mkdir(parents=True)
    (folder / "tokens" / "x" / "index.bin").touch()
    for name, read in {
        "config.json": lambda path: Run.open(path.parent),
        "categories.json": lambda path: current_answer(Run.open(path.parent)),
        "assignments.csv": lambda path: current_answer(Run.open(path.parent)),
        "scores.json": lambda path: read_contents(Run.open(path.parent)),
        "environment.json": lambda path: read_contents(Run.open(path.parent)),
        "model.json": lambda path: load_model(Run.open(path.parent)),
        "model.safetensors": lambda path: load_model(Run.open(path.parent)),
        "metrics.jsonl": lambda path: Run.open(path.parent).metrics(),
        "features.npy": lambda path: Run.open(path.parent).features(),
        "decisions.sqlite": lambda path: DecisionLog(path.parent).events(),
    }.items():
        content = (run / name).read_bytes() or b'{"epoch": 1, "seconds": 0.5}\n{"epoch": 2}\n'
        found.append(Reader(f"run ({name})", f"run/{name}", content, _restoring(read, run / name)))
    read_by = {".json": read_label_studio, ".tsv": read_ecotaxa, ".zip": read_ecotaxa, ".onnx": _predict_onnx}
    found += [
        *(
            Reader(f"from elsewhere ({name})", f"elsewhere/{name}", content, read_by[Path(name).suffix])
            for name, content, _ in exchanged_files(runs, folder)
        ),
        Reader("images to serve", "x.body", b'{"images": [{"name": "a", "data": "AAAA"}, "AAAA"]}', _served),
    ]
    found.append(Reader("part of features", "store/part-000000.json", _part(), _open_store))
    found.append(Reader("manifest of features", "store/manifest.json", _store(folder / "store"), _open_store))
    return found


@cache
def packed_files(runs: SmallRuns) -> list[tuple[str, bytes]]:
    """Names and contents of sound files that contain others, or tables in a format of their own; the same bytes at every call, although
    some contain the time."""
    image = (runs.images / "img" / "red0.png").read_bytes()
    return [
        ("x.xlsx", _excel()),
        ("x.parquet", _parquet()),
        ("images.parquet", _parquet_images(image)),
        ("found.json", _detections()),
        ("coco.json", _coco()),
        ("x.tar", _tar(image)),
    ]


def _predict_onnx(path: Path) -> object:
    """Open an exported model and ask it about one image."""
    model = OnnxModel(path, n_threads=1)
    return model.answer([np.zeros((2, 3, 32, 32), dtype=np.uint8)])


def _served(path: Path) -> object:
    """Images of a request; an answer with a status below 500 is an error that the client understands."""
    try:
        return _from_json(path.read_bytes())
    except HTTPException as error:
        if error.status_code >= 500:
            raise
        return None


def _check_images(path: Path) -> object:
    """Read all images of a file."""
    items = open_data(path).catalog.items
    return [check_image(items, i) for i in range(len(items))] if isinstance(items, Images) else None


def _open_store(path: Path) -> object:
    """Open a folder of features; the joined file is made again from its parts."""
    (path.parent / "features.npy").unlink(missing_ok=True)
    return open_data(path.parent)


def _store(folder: Path) -> bytes:
    """Write a folder of features, and return its manifest."""
    folder.mkdir()
    manifest = {"kind": "newkind-features", "format": 1, "about": {}, "images": 3, "names": "x", "labels": "y"}
    manifest |= {"part_size": 4, "parts": 1, "dim": 3, "class_names": ["a"], "truth_names": ["a", "b"]}
    np.save(folder / "part-000000.npy", np.eye(3, dtype=np.float32))
    (folder / "part-000000.json").write_bytes(_part())
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return (folder / "manifest.json").read_bytes()


def _part() -> bytes:
    part = {"names": ["1", "2", "3"], "labels": [0, -1, -1], "truth": [0, 1, 1], "groups": None, "skipped": []}
    return json.dumps(part).encode()


def _restoring(read: Callable[[Path], object], path: Path) -> Callable[[Path], object]:
    """A reader of a run's file that leaves the run as it was, so that only one file of it is damaged at a time."""
    sound = path.read_bytes()

    def run(damaged_path: Path) -> object:
        try:
            return read(damaged_path)
        finally:
            path.write_bytes(sound)
            for suffix in ("-wal", "-shm"):
                path.with_name(path.name + suffix).unlink(missing_ok=True)

    return run


def _decode(path: Path) -> None:
    """Check an image and decode it; both must find the same."""
    images = FileImages(path.parent, Names([path.name]))
    check = check_image(images, 0)
    try:
        images.open(0)
    except NewkindError:
        assert check.error


def _image(kind: str) -> bytes:
    pixels = np.random.default_rng(0).integers(0, 256, (24, 20, 3), dtype=np.uint8)
    exif = Image.Exif()
    exif[0x0112] = 6
    content = io.BytesIO()
    Image.fromarray(pixels).save(content, kind, **({"exif": exif} if kind in ("png", "jpeg", "webp") else {}))
    return content.getvalue()


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="surrogateescape")


def _decision(path: Path) -> Decision:
    """A decision as a request contains it."""
    return Decision.from_json(parse_json(path.read_bytes(), dict))


def _excel() -> bytes:
    from openpyxl import Workbook

    book, content = Workbook(), io.BytesIO()
    for row in (["file_name", "label"], ["img/red0.png", "red"], ["img/blue0.png", None], ["img/red1.png", 3]):
        book.active.append(row)
    book.save(content)
    return content.getvalue()


def _parquet() -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    content = io.BytesIO()
    pq.write_table(pa.table({"file_name": ["img/red0.png", "img/blue0.png"], "label": ["red", None]}), content)
    return content.getvalue()


def _parquet_images(image: bytes) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    content = io.BytesIO()
    about = {"info": {"features": {"label": {"names": ["red", "blue"], "_type": "ClassLabel"}}}}
    columns = {"image": [{"bytes": image, "path": f"{i}.png"} for i in range(2)], "label": [0, -1]}
    pq.write_table(pa.table(columns).replace_schema_metadata({"huggingface": json.dumps(about)}), content)
    return content.getvalue()


def _detections() -> bytes:
    box = {"category": "1", "conf": 0.9, "bbox": [0.1, 0.1, 0.5, 0.5]}
    images = [{"file": f"img/{kind}0.png", "detections": [box]} for kind in ("red", "blue")]
    return json.dumps({"images": images, "detection_categories": {"1": "animal"}}).encode()


def _coco() -> bytes:
    images = [{"id": i, "file_name": f"img/{kind}0.png"} for i, kind in enumerate(("red", "blue"))]
    boxes = [{"id": i, "image_id": i, "category_id": 1, "bbox": [1, 1, 9, 9]} for i in range(2)]
    content = {"images": images, "annotations": boxes, "categories": [{"id": 1, "name": "fox"}]}
    return json.dumps(content).encode()


def _tar(image: bytes) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        members = {"a.png": image, "a.cls": b"red", "b.png": image, "b.json": b'{"label": "blue", "site": [1]}'}
        for name, body in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(body)
            archive.addfile(member, io.BytesIO(body))
    return content.getvalue()


def _npy() -> bytes:
    content = io.BytesIO()
    np.save(content, np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32))
    return content.getvalue()


def _matlab() -> bytes:
    from scipy.io import savemat

    content = io.BytesIO()
    savemat(content, {"x": np.arange(6.0), "names": np.array(["a", "b"], dtype=object)})
    return content.getvalue()


def _cifar() -> bytes:
    return pickle.dumps({"data": np.zeros((2, 3072), dtype=np.uint8), "labels": [0, 1]}, protocol=2)


def _pytorch() -> bytes:
    content = io.BytesIO()
    torch.save({"state_dict": {"x": torch.eye(3)}}, content)
    return content.getvalue()


def _checkpoint() -> bytes:
    about = json.dumps({"finished_epochs": 3, "fingerprint": "x"})
    return save_tensors({"network.x": torch.eye(3)}, metadata={"about": about})


def _onnx() -> bytes:
    import onnx
    from onnx import helper, numpy_helper

    tensor = numpy_helper.from_array(np.eye(3, dtype=np.float32), "x")
    value = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [3])
    node = helper.make_node("MatMul", ["y", "x"], ["z"], name="n")
    out = helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, [3])
    model: bytes = helper.make_model(helper.make_graph([node], "g", [value], [out], [tensor])).SerializeToString()
    return model
