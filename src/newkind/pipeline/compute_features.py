"""`features`: features of a collection's images, computed by any number of workers in any order.

The images are divided into parts. Worker I of N computes the parts I, I + N, I + 2 N and so on that do not exist yet, so that every worker
may be started any number of times. Workers share nothing but the folder. A part is the same whoever computes it.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from newkind import atomic, distributed
from newkind.backbone.cache_plan import images_of
from newkind.backbone.loader import Backbone, load_backbone
from newkind.backbone.online import OnlineTokens
from newkind.backbone.precision import choose_precision
from newkind.config import BackboneConfig
from newkind.data import Collection, Images
from newkind.data.feature_parts import FORMAT, LOCK, MANIFEST, Manifest, Part, part_file, read_manifest
from newkind.data.identity import identity_digest
from newkind.data.slices import ImageSlice
from newkind.data.views import random_views
from newkind.errors import DataError
from newkind.progress import quiet
from newkind.runs.fingerprint import digest_of
from newkind.schema import parse_json
from newkind.shard import Shard
from newkind.training.inference import BATCH, view_mean
from newkind.training.network import Encoder

__all__ = ["PART_SIZE", "ComputedFeatures", "FeatureParts", "compute_features"]

PART_SIZE = 1024
"""Images per part."""


@dataclass(frozen=True)
class ComputedFeatures:
    """Result of `compute_features`.

    Parameters
    ----------
    n_parts, n_found : int
        Number of parts of this worker, over all its processes, and of those that existed already.
    n_images, n_skipped : int
        Number of images that were computed now, and of those that cannot be read.
    is_complete : bool
        Whether the parts of all workers exist.
    """

    n_parts: int
    n_found: int
    n_images: int
    n_skipped: int
    is_complete: bool

    @classmethod
    def of(
        cls, parts: FeatureParts, n_parts: int, n_found: int, computed: Iterable[tuple[int, int]]
    ) -> ComputedFeatures:
        """Result of a worker from what `FeatureParts.compute` returned for its parts; all processes of a job have to ask."""
        images, skipped = np.array(list(computed), dtype=np.int64).reshape(-1, 2).sum(axis=0).tolist()
        own = torch.tensor([[n_parts, n_found, images, skipped]])
        n_parts, n_found, images, skipped = distributed.gather(own).sum(dim=0).tolist()
        return cls(n_parts, n_found, images, skipped, all(map(parts.exists, range(parts.count))))


class FeatureParts:
    """Parts of the features of a collection, computed one at a time.

    Parameters
    ----------
    collection : Collection
        All images, in every worker the same.
    config : BackboneConfig
        Configuration of the backbone, which is loaded.
    out : Path
        Folder of the parts; created if it does not exist.
    n_views : int, default=2
        Number of random views that are averaged with the evaluation view.
    part_size : int, default=1024
        Images per part.

    Raises
    ------
    DataError
        With the code `other-features` if the folder has features of other images or another backbone.
    """

    def __init__(
        self,
        collection: Collection,
        config: BackboneConfig,
        out: Path,
        *,
        n_views: int = 2,
        part_size: int = PART_SIZE,
    ) -> None:
        config = choose_precision(replace(config, tuned_blocks=0))
        self.collection, self.config, self.out, self.part_size = collection, config, out, part_size
        self.backbone = load_backbone(config)
        self.images, self.views = images_of(collection), (0, *random_views(n_views))
        self.count = -(-len(self.images) // part_size)
        about = _about(config, self.backbone, self.views)
        _claim(out, collection, about, part_size, self.count, self.backbone.trunk.dim)

    def places(self, number: int) -> range:
        """Indices of the images of a part."""
        return range(number * self.part_size, min((number + 1) * self.part_size, len(self.images)))

    def exists(self, number: int) -> bool:
        """Whether a part is complete."""
        return part_file(self.out, number, ".json").exists()

    def compute(self, number: int) -> tuple[int, int]:
        """Compute a part, unless it exists, and return the numbers of its images that were computed now and that cannot be read."""
        if self.exists(number):
            return 0, 0
        rows, about = _part(self.collection, self.images, self.places(number), self.config, self.backbone, self.views)
        _write(self.out, number, rows, about)
        return len(rows), len(about["skipped"])


def compute_features(parts: FeatureParts, *, shard: Shard, advance: Callable[[int], None] = quiet) -> ComputedFeatures:
    """Compute the features of the parts of one worker that do not exist yet.

    Parameters
    ----------
    parts : FeatureParts
        All parts.
    shard : Shard
        Which worker this is.
    advance : callable, optional
        Called with the number of finished images.

    Returns
    -------
    ComputedFeatures
    """
    own = range(shard.number, parts.count, shard.count)
    n_found, computed = sum(map(parts.exists, own)), []
    for number in own:
        computed.append(parts.compute(number))
        advance(len(parts.places(number)))
    return ComputedFeatures.of(parts, len(own), n_found, computed)


def _about(config: BackboneConfig, backbone: Backbone, views: tuple[int, ...]) -> dict[str, Any]:
    """Everything that features depend on, except the images."""
    recipe = parse_json(json.dumps(asdict(backbone.recipe)), dict)  # as it is read back
    about = {"backbone": config.name, "weights_sha256": backbone.sha256, "precision": config.precision}
    return about | {"recipe": recipe, "views": list(views), "seed": config.view_seed}


def _claim(out: Path, collection: Collection, about: dict[str, Any], part_size: int, n_parts: int, dim: int) -> None:
    """Write the manifest, or compare it with the one that is there."""
    catalog, truth = collection.catalog, collection.truth
    names = digest_of(*(name.encode("utf-8", "surrogatepass") for name in catalog.items.names))
    content: Manifest = {
        "kind": "newkind-features",
        "format": FORMAT,
        "about": about,
        "images": len(catalog),
        "names": names,
        "content": identity_digest(catalog.items),
        "labels": digest_of(catalog.labels, list(catalog.class_names)),
        "part_size": part_size,
        "parts": n_parts,
        "dim": dim,
        "class_names": list(catalog.class_names),
        "truth_names": None if truth is None else list(truth.class_names),
    }
    with atomic.write_errors(out, error=DataError):
        atomic.make_folder(out)
        with atomic.file_lock(out / LOCK):  # several workers may start at the same moment
            if not (out / MANIFEST).exists():
                atomic.write_json(out / MANIFEST, content, error=DataError)
    found = read_manifest(out)
    if different := [name for name, value in content.items() if found.get(name) != value]:
        raise DataError(
            f"{out} has other features: its {different[0].replace('_', ' ')} differs.",
            fix="Use another `out`, or the same data and options.",
            code="other-features",
            different=different,
        )


@torch.no_grad()
def _part(
    collection: Collection,
    images: Images,
    places: range,
    config: BackboneConfig,
    backbone: Backbone,
    views: tuple[int, ...],
) -> tuple[NDArray[np.float32], Part]:
    """Features (n, d) of those images at `places` that can be read, with their names and labels."""
    part = ImageSlice(images, places.start, [images.names[i] for i in places])
    source = OnlineTokens(part, backbone.trunk, backbone.recipe, device=backbone.device, seed=config.view_seed)
    encoder, size = Encoder(backbone.tuned).to(backbone.device).eval(), max(BATCH // len(views), 1)
    batches = [np.arange(i, min(i + size, len(part))) for i in range(0, len(part), size)]
    rows, readable = [np.zeros((0, backbone.trunk.dim), np.float32)], [np.zeros(0, np.int64)]
    for batch, found in zip(batches, source.evaluation_batches(iter(batches), views), strict=True):
        if len(found.rows):
            tokens = found.tokens.to(backbone.device)
            rows.append(view_mean(encoder.features(tokens), len(views)).float().cpu().numpy())
            readable.append(batch[found.rows])
    kept, catalog, truth = np.concatenate(readable), collection.catalog, collection.truth
    at = places.start + kept
    return np.concatenate(rows), {
        "names": [part.names[int(i)] for i in kept],
        "labels": catalog.labels[at].tolist(),
        "truth": None if truth is None else truth.labels[at].tolist(),
        "groups": None if catalog.groups is None else catalog.groups[at].tolist(),
        "skipped": [[item.name, item.reason, item.code] for item in source.skipped],
    }


def _write(out: Path, number: int, rows: NDArray[np.float32], about: Part) -> None:
    """Write the features of a part, and then what they are of."""
    content = io.BytesIO()
    np.save(content, rows, allow_pickle=False)
    atomic.write_bytes(part_file(out, number, ".npy"), content.getbuffer(), error=DataError)
    record = {"sha256": hashlib.sha256(content.getbuffer()).hexdigest()}
    atomic.write_json(part_file(out, number, ".json"), {**about, **record}, error=DataError)
