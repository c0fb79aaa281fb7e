"""Sound files of other programs, which commands read: corrections and exported models."""

import io
import json
import zipfile
from pathlib import Path

import numpy as np
from onnx_files import ABOUT, onnx_file
from small_runs import SmallRuns

from newkind.export.ecotaxa import EVENT_COLUMN, FILE_COLUMN

__all__ = ["exchanged_files"]


def exchanged_files(runs: SmallRuns, folder: Path) -> list[tuple[str, bytes, list[str]]]:
    """Names and contents of sound files of other programs, and the commands that read them, with FILE for the file."""
    answers = [{"newkind_file": "0", "answer": "a"}, {"data": {"newkind_file": "1"}, "annotations": [_annotation()]}]
    model = onnx_file(folder / "sound.onnx", ABOUT, np.array([[0.6, 0.4]], dtype=np.float32)).read_bytes()
    apply = ["apply", str(runs.features_run), "FILE", "--dry-run", "--format"]
    return [
        ("answers.json", json.dumps(answers).encode(), [*apply, "labelstudio"]),
        ("objects.tsv", _ecotaxa(), [*apply, "ecotaxa"]),
        ("objects.zip", _zipped(_ecotaxa()), [*apply, "ecotaxa"]),
        ("x.onnx", model, ["predict", "--onnx", "FILE", str(runs.images / "img" / "red0.png")]),
    ]


def _annotation() -> dict[str, object]:
    chosen = {"from_name": "answer", "type": "choices", "value": {"choices": ["b"]}}
    box = {"from_name": "answer", "type": "rectanglelabels", "id": "1", "value": {"rectanglelabels": ["c"]}}
    return {"was_cancelled": False, "result": [chosen, box]}


def _ecotaxa() -> bytes:
    rows = [
        [FILE_COLUMN, "object_annotation_category", "object_annotation_status", EVENT_COLUMN],
        ["[t]", "[t]", "[t]", "[f]"],
        ["0", "Copepoda<Maxillopoda", "validated", "3"],
        ["1", "b", "predicted", ""],
    ]
    return "\n".join("\t".join(row) for row in rows).encode()


def _zipped(content: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("objects.tsv", content)
    return packed.getvalue()
