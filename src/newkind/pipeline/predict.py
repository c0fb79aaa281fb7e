"""`predict`: images never seen, sorted by a finished run's model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from newkind.backbone.online import OnlineTokens
from newkind.backbone.ready import ReadyFeatures
from newkind.data import Collection, Features, FileImages, Names, Skipped
from newkind.data.decoding import IMAGE_SUFFIXES
from newkind.errors import DataError
from newkind.runs.assignments import Assignment, assignments_of
from newkind.runs.model_io import LoadedModel
from newkind.training.inference import predict_images

__all__ = ["Sorted", "images_at", "sort_images"]


class Sorted:
    """Lines for assignments, the novelty of each, and what could not be decoded."""

    def __init__(self, lines: list[Assignment], novelty: list[float], skipped: tuple[Skipped, ...]) -> None:
        self.lines = lines
        self.novelty = novelty
        self.skipped = skipped


def images_at(places: list[Path]) -> FileImages:
    """Image files, every image below folders, and those that .txt lists name (one a line). Names are as given."""
    found: list[str] = []
    for place in places:
        if place.is_dir():
            below = (p for p in sorted(place.rglob("*")) if p.suffix.lower() in IMAGE_SUFFIXES and p.is_file())
            found += [str(p) for p in below]
        elif place.suffix.lower() == ".txt" and place.is_file():
            found += [line.strip() for line in place.read_text(errors="surrogateescape").splitlines() if line.strip()]
        elif place.exists():
            found.append(str(place))
        else:
            raise DataError(f"{place} does not exist.")
    if not found:
        raise DataError(f"There is no image in {', '.join(map(str, places))}.")
    return FileImages(Path(), Names(dict.fromkeys(found)))


def sort_images(model: LoadedModel, images: FileImages | Features, *, advance: Callable[[int], None]) -> Sorted:
    """Categories for images that the model has not seen, from their evaluation view."""
    source: OnlineTokens | ReadyFeatures
    if isinstance(images, Features):
        if model.prepared is not None or images.values.shape[1] != model.dim:
            wanted = "images" if model.prepared is not None else f"features of {model.dim} numbers"
            raise DataError(f"This run sorts {wanted}, not features of {images.values.shape[1]} numbers.")
        source, device = ReadyFeatures(images), torch.device("cpu")
    elif model.prepared is None:
        raise DataError("This run was made on ready features; it cannot sort images.")
    else:
        device = model.prepared.device
        source = OnlineTokens(images, model.prepared.trunk, model.trunk.recipe, device=device)
    usable = np.flatnonzero(source.usable)
    unlabelled = np.full(len(usable), -1)
    predictions = predict_images(
        model.network,
        source,
        usable,
        labels=unlabelled,
        n_known=model.n_known,
        device=device,
        batch_size=32,
        advance=advance,
    )
    names = [images.names[int(i)] for i in usable]
    lines = assignments_of(names, unlabelled, model.categories, predictions)
    return Sorted(lines, predictions.novelty.tolist(), source.skipped)


def as_images(collection: Collection) -> FileImages | Features:
    """What `predict` can take of a collection."""
    items = collection.catalog.items
    if isinstance(items, FileImages | Features):
        return items
    raise DataError("predict takes image files, or an .npz file with features.")
