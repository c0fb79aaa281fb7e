"""An exported model, computed by onnxruntime. Nothing here imports torch, so that a prediction starts at once."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from newkind.config import MOST_VIEWS
from newkind.data.catalog import Skipped
from newkind.data.crops import ViewRecipe, view_pixels
from newkind.data.decoding import decode
from newkind.data.image_files import list_files
from newkind.data.items import FileImages
from newkind.data.names import Names
from newkind.data.prefetch import map_ahead, n_cpus
from newkind.errors import BrokenImage, ConfigError, DataError
from newkind.progress import quiet
from newkind.runs.assignment import Assignment
from newkind.schema import parse_json
from newkind.setting import check_number, check_seed

__all__ = ["METADATA_KEY", "Answers", "ImageModel", "OnnxModel", "list_images", "predict_images"]

METADATA_KEY = "newkind"
VIEWS_PER_BATCH = 16
DIGEST_BYTES = 16
AHEAD = 32


class _Category(TypedDict):
    """A category of an exported model."""

    name: str
    status: str


class _About(TypedDict):
    """What an exported file says about its model."""

    image_size: int
    crop_share: float
    mirror: float
    reducing_gap: float
    categories: list[_Category]
    views: list[int]
    view_seed: int


@dataclass(frozen=True)
class Answers:
    """What a model says about b images.

    Parameters
    ----------
    probabilities : ndarray of float32, shape (b, n_categories)
        Probabilities of all categories.
    outlier : ndarray of bool, shape (b,), optional
        Whether each image fits no category; None if the method has no rule.
    """

    probabilities: NDArray[np.float32]
    outlier: NDArray[np.bool_] | None


class ImageModel(ABC):
    """A model of images in three steps: prepare each image, answer a batch, make a line of results.

    Parameters
    ----------
    recipe : ViewRecipe
        Recipe of the views.
    views : tuple of int
        Numbers of the views per image.
    seed : int
        Seed of random views.
    categories : list of (str, str)
        Name and status of each category.
    """

    def __init__(
        self, recipe: ViewRecipe, views: tuple[int, ...], seed: int, categories: list[tuple[str, str]]
    ) -> None:
        if not views or not categories:
            raise ValueError("no views or no categories")
        self.recipe, self.views, self.seed, self.categories = recipe, views, seed, categories
        self._is_new = np.array([status == "new" for _, status in categories])

    @property
    def images_per_batch(self) -> int:
        """Number of images that are computed at a time."""
        return max(VIEWS_PER_BATCH // len(self.views), 1)

    def prepare(self, content: bytes, *, name: str) -> NDArray[np.uint8]:
        """Views (V, 3, S, S) of an image file; raises BrokenImage. Threads may call it at once."""
        image = decode(content, name=name, shorter_side=self.recipe.decoded)
        digest = hashlib.blake2b(content, digest_size=DIGEST_BYTES).digest()
        return view_pixels(image, self.recipe, self.views, seed=self.seed, content=digest)

    def answer(self, pixels: Sequence[NDArray[np.uint8]]) -> Answers:
        """Compute probabilities for images that were prepared; an empty sequence is allowed."""
        size = self.images_per_batch
        parts = [self.compute(np.stack(pixels[i : i + size])) for i in range(0, len(pixels), size)]
        empty = np.zeros((0, len(self.categories)), np.float32)
        outliers = [part.outlier for part in parts if part.outlier is not None]
        return Answers(
            np.concatenate([empty, *(part.probabilities for part in parts)]),
            np.concatenate(outliers) if outliers else None,
        )

    @abstractmethod
    def compute(self, pixels: NDArray[np.uint8]) -> Answers:
        """Probabilities of one batch (b, V, 3, S, S)."""

    def assignment(self, file: str, answers: Answers, row: int, *, min_confidence: float = 0.0) -> Assignment:
        """Line of the results for one image."""
        p = answers.probabilities[row]
        order = np.argsort(-p, kind="stable")
        best, second = int(order[0]), int(order[min(1, len(order) - 1)])
        name, status = self.categories[best]
        return Assignment(
            file=file,
            category=name,
            status="unsure" if p[best] < min_confidence else status,
            confidence=round(float(p[best]), 4),
            second=self.categories[second][0],
            second_confidence=round(float(p[second]), 4),
            novelty=round(float(p[self._is_new].sum()), 4),
            outlier=None if answers.outlier is None else bool(answers.outlier[row]),
        )


class OnnxModel(ImageModel):
    """A model written by `newkind export --format onnx`.

    Parameters
    ----------
    path : Path
        The file.
    n_threads : int, default=0
        Threads of one computation; 0 for one per processor.

    Raises
    ------
    DataError
        With the code `missing-file`, `unreadable` or `not-an-export`.
    ConfigError
        With the code `missing-package` if onnxruntime is not installed.
    """

    def __init__(self, path: Path, *, n_threads: int = 0) -> None:
        self.path, self._session = path, _open_session(path, n_threads)
        try:
            about = parse_json(self._session.get_modelmeta().custom_metadata_map[METADATA_KEY], _About)
            recipe = ViewRecipe(
                image_size=about["image_size"],
                crop_share=about["crop_share"],
                mirror=about["mirror"],
                reducing_gap=about["reducing_gap"],
            )
            _check_about(about, self._session.get_inputs(), self._session.get_outputs())
            categories = [(row["name"], row["status"]) for row in about["categories"]]
            super().__init__(recipe, tuple(about["views"]), about["view_seed"], categories)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, DataError, ConfigError) as error:
            raise DataError(
                f"{path} was not written by newkind export ({error}).",
                fix="Write it with: newkind export RUN --format onnx --out FILE.onnx",
                code="not-an-export",
                path=str(path),
            ) from None
        self._wanted = [output.name for output in self._session.get_outputs() if output.name != "features"]

    def compute(self, pixels: NDArray[np.uint8]) -> Answers:
        try:
            found = dict(zip(self._wanted, self._session.run(self._wanted, {"pixels": pixels}), strict=True))
        except Exception as error:  # noqa: BLE001 - onnxruntime has classes of its own, which it does not document
            raise self._wrong(_first_line(error)) from None
        p, outlier, n = found["probabilities"], found.get("outlier"), len(pixels)
        if p.shape != (n, len(self.categories)) or p.dtype.kind != "f" or not np.isfinite(p).all():
            raise self._wrong(f"its answers to {n} images of {len(self.categories)} categories are not probabilities")
        if outlier is not None and outlier.shape != (n,):
            raise self._wrong(f"its outliers of {n} images have the shape {outlier.shape}")
        return Answers(p.astype(np.float32), None if outlier is None else outlier.astype(bool))

    def _wrong(self, reason: str) -> DataError:
        return DataError(
            f"{self.path} cannot be computed ({reason}).",
            fix="Write it again with: newkind export RUN --format onnx --out FILE.onnx",
            code="damaged-model",
            path=str(self.path),
        )


def _check_about(about: _About, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
    """Raise ValueError or ConfigError unless what a file says about its model fits the model, and has sensible numbers."""
    check_number("image_size", about["image_size"], at_least=14, at_most=4096)
    check_number("crop_share", about["crop_share"], at_least=0.01, at_most=1)
    check_number("reducing_gap", about["reducing_gap"], at_least=1, at_most=100)
    check_number("views", len(about["views"]), at_least=1, at_most=MOST_VIEWS)
    check_seed("view_seed", about["view_seed"])
    for view in about["views"]:
        check_number("views", view, at_least=0, at_most=MOST_VIEWS)
    shape = [len(about["views"]), 3, about["image_size"], about["image_size"]]
    if [node.name for node in inputs] != ["pixels"] or list(inputs[0].shape[1:]) != shape:
        raise ValueError(f"it does not take pixels of shape {shape}")
    if "probabilities" not in [node.name for node in outputs]:
        raise ValueError("it returns no probabilities")


def predict_images(
    model: ImageModel,
    images: FileImages,
    *,
    min_confidence: float = 0.0,
    advance: Callable[[int], None] = quiet,
) -> tuple[list[Assignment], tuple[Skipped, ...]]:
    """Assign image files: exactly one line per image, in order, and the images that cannot be read."""

    def prepared(index: int) -> NDArray[np.uint8] | Skipped:
        try:
            return model.prepare(images.content(index), name=images.names[index])
        except BrokenImage as error:
            return Skipped(images.names[index], str(error.facts.get("reason", error.what)), error.code)

    lines = [Assignment(name, "", "unreadable", 0.0, "", 0.0) for name in images.names]
    skipped: list[Skipped] = []
    found = map_ahead(prepared, range(len(images)), n_threads=n_cpus(), ahead=AHEAD)
    for batch in _batches(enumerate(found), model.images_per_batch):
        good = [(i, made) for i, made in batch if not isinstance(made, Skipped)]
        skipped += [made for _, made in batch if isinstance(made, Skipped)]
        answers = model.answer([made for _, made in good])
        for row, (i, _) in enumerate(good):
            lines[i] = model.assignment(images.names[i], answers, row, min_confidence=min_confidence)
        advance(len(batch))
    return lines, tuple(skipped)


def list_images(places: Sequence[Path]) -> FileImages:
    """Image files, also those that cannot be used; folders and .txt lists are followed."""
    return FileImages(Path(), Names(list_files(places)))


def _batches(items: Iterator[tuple[int, Any]], size: int) -> Iterator[list[tuple[int, Any]]]:
    batch: list[tuple[int, Any]] = []
    for item in items:
        batch.append(item)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def _open_session(path: Path, n_threads: int) -> Any:
    """Session of onnxruntime."""
    try:
        import onnxruntime
    except ImportError:
        raise ConfigError(
            "An ONNX file needs onnxruntime, which is not installed.",
            fix="pip install 'newkind[onnx]'",
            code="missing-package",
        ) from None
    if not path.is_file():
        raise DataError(f"{path} is not a file.", code="missing-file", path=str(path))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = n_threads
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # noqa: BLE001 - onnxruntime has classes of its own, which it does not document
        raise DataError(
            f"{path} cannot be read as ONNX ({_first_line(error)}).", code="unreadable", path=str(path)
        ) from None


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
