"""`predict` for very many images: one Parquet file per part, so that an interrupted prediction loses at most one part.

A folder of parts has a `manifest.json`, which says what was predicted with which model, and `part-000000.parquet` and so on. A part is
written under another name and renamed when it is complete, so that a part that exists is never computed again. Workers need not know of
each other: worker I of N computes the parts I, I + N, I + 2 N and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from newkind import __version__, atomic
from newkind.data.items import Features, Images
from newkind.data.missing_package import missing_package
from newkind.data.slices import ItemParts, ListParts
from newkind.errors import ConfigError, RunError
from newkind.pipeline.predict import predict
from newkind.pipeline.predict_inputs import open_inputs
from newkind.progress import quiet
from newkind.reading import ReadingConfig
from newkind.runs.assignment import COLUMNS, Assignment
from newkind.runs.fingerprint import digest_of
from newkind.runs.model_io import LoadedModel
from newkind.runs.run import Run
from newkind.shard import Shard

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["PART_SIZE", "InputParts", "PredictedParts", "open_parts", "predict_parts"]

FORMAT, MANIFEST, LOCK = 1, "manifest.json", ".lock"
PART_SIZE = 4096
"""Images per part."""


class InputParts(Protocol):
    """Items to predict, in parts of `size` items."""

    @property
    def size(self) -> int:
        """Number of items per part."""
        ...

    def __len__(self) -> int:
        """Number of items."""
        ...

    @property
    def digest(self) -> str:
        """Digest of all names, and of what tells the items from others with these names."""
        ...

    def part(self, number: int) -> Images | Features:
        """Items of one part."""
        ...


@dataclass(frozen=True)
class PredictedParts:
    """Result of `predict_parts`.

    Parameters
    ----------
    n_parts : int
        Number of parts of this worker.
    n_found : int
        Number of them that were there already.
    n_images : int
        Number of images that were predicted now.
    n_unreadable : int
        Number of them that cannot be read.
    is_complete : bool
        Whether the parts of all workers exist.
    """

    n_parts: int
    n_found: int
    n_images: int
    n_unreadable: int
    is_complete: bool


def open_parts(places: Sequence[Path], reading: ReadingConfig | None = None, *, size: int = PART_SIZE) -> InputParts:
    """Items to predict in parts.

    Parameters
    ----------
    places : sequence of Path
        As in `open_inputs`. One .txt file is read in parts, so that memory does not depend on its length.
    reading : ReadingConfig, optional
        As in `open_inputs`, without groups: their images could be in several parts.
    size : int, default=4096
        Number of items per part.

    Returns
    -------
    InputParts
    """
    reading = reading or ReadingConfig()
    if reading.group_column is not None:
        raise ConfigError(
            "`group_column` cannot be combined with a folder of parts.",
            fix="Use a CSV file as `out`.",
            code="needs-file",
            setting="group_column",
        )
    if len(places) == 1 and places[0].suffix.lower() == ".txt" and places[0].is_file() and not reading.given():
        return ListParts(places[0], size)
    return ItemParts(open_inputs(places, reading).items, size)


def predict_parts(
    model: LoadedModel,
    inputs: InputParts,
    out: Path,
    *,
    shard: Shard,
    min_confidence: float = 0.0,
    advance: Callable[[int], None] = quiet,
) -> PredictedParts:
    """Predict the parts of one worker that do not exist yet.

    Parameters
    ----------
    model : LoadedModel
        Model of a finished run.
    inputs : InputParts
        As from `open_parts`.
    out : Path
        Folder of the parts; created if it does not exist.
    shard : Shard
        Which worker this is.
    min_confidence : float, default=0.0
        As in `predict`.
    advance : callable, optional
        Called with the number of images of each finished batch, and of each part that is there already.

    Returns
    -------
    PredictedParts

    Raises
    ------
    RunError
        With the code `other-parts` if the folder has parts of other images or of another model.
    """
    _pyarrow(out)
    n_all = -(-len(inputs) // inputs.size)
    _claim(out, model, inputs, n_all, min_confidence)
    own, found, n_images, n_unreadable = range(shard.number, n_all, shard.count), 0, 0, 0
    for number in own:
        target = _part_file(out, number)
        if target.exists():
            found += 1
            advance(min(inputs.size, len(inputs) - number * inputs.size))
            continue
        lines = predict(model, inputs.part(number), min_confidence=min_confidence, advance=advance).assignments
        _write_part(target, lines)
        n_images += len(lines)
        n_unreadable += sum(line.status == "unreadable" for line in lines)
    is_complete = all(_part_file(out, number).exists() for number in range(n_all))
    return PredictedParts(len(own), found, n_images, n_unreadable, is_complete)


def _part_file(out: Path, number: int) -> Path:
    return out / f"part-{number:06d}.parquet"


def _claim(out: Path, model: LoadedModel, inputs: InputParts, n_parts: int, min_confidence: float) -> None:
    """Write the manifest, or compare it with the one that is there."""
    content: dict[str, Any] = {
        "format": FORMAT,
        "model": _model_digest(model),
        "inputs": inputs.digest,
        "images": len(inputs),
        "part_size": inputs.size,
        "parts": n_parts,
        "min_confidence": min_confidence,
        "columns": list(COLUMNS),
    }
    with atomic.write_errors(out):
        atomic.make_folder(out)
    manifest = out / MANIFEST
    with atomic.write_errors(out), atomic.file_lock(out / LOCK):  # several workers may start at the same moment
        if not manifest.exists():
            atomic.write_json(manifest, content | {"newkind": __version__})
    found = Run(out).read_json(manifest)  # any object: every entry is compared
    if different := [name for name, value in content.items() if found.get(name) != value]:
        raise RunError(
            f"{out} has parts of another prediction: its {different[0].replace('_', ' ')} differs.",
            fix="Use another `out`, or the same images, model and options.",
            code="other-parts",
            folder=out,
            different=different,
        )


def _model_digest(model: LoadedModel) -> str:
    """Digest of everything of a model that decides predictions, and of the names of its categories."""
    state = [value.detach().cpu().numpy() for value in model.network.method.state_dict().values()]
    tuned = [] if model.network.tuned is None else model.network.tuned.state_dict().values()
    state += [value.detach().cpu().float().numpy() for value in tuned]
    named = [[category.name, category.status, list(category.prototypes)] for category in model.categories]
    return digest_of(named, list(model.views), *state)


def _write_part(target: Path, lines: list[Assignment]) -> None:
    """Write assignments as a Parquet file, complete or not at all."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = {name: [getattr(line, name) for line in lines] for name in COLUMNS}
    rows["file"] = [atomic.to_bytes(name).decode("utf-8", "replace") for name in rows["file"]]
    with atomic.replacing(target) as file:
        pq.write_table(pa.table(rows, schema=_schema(pa)), file, compression="zstd")


def _schema(pa: Any) -> pa.Schema:
    kinds = {name: pa.string() for name in ("file", "category", "status", "second")}
    kinds |= {name: pa.float32() for name in ("confidence", "second_confidence", "novelty")}
    return pa.schema([(name, kinds.get(name, pa.bool_())) for name in COLUMNS])


def _pyarrow(out: Path) -> None:
    """Raise DataError (`missing-package`) without pyarrow, before any work."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise missing_package(out, "Parquet files", "pyarrow", "parquet") from None
