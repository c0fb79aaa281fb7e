"""`features` on a Ray cluster: Ray Data hands the parts to its workers, and again if a worker dies. Needs Ray (the extra `ray`)."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from newkind.config import BackboneConfig
from newkind.data import Collection
from newkind.data.missing_package import missing_package
from newkind.errors import DataError, NewkindError
from newkind.pipeline.compute_features import ComputedFeatures, FeatureParts
from newkind.progress import quiet

__all__ = ["compute_on_ray"]

BLOCKS_PER_WORKER = 20
"""Blocks of parts that Ray hands out; with many small ones, a slow worker delays few parts."""


class _Worker:
    """Process of a Ray cluster that has the backbone in memory and computes parts.

    Relative names of data and weights start from `folder`, as in the process that was started by the user.
    """

    def __init__(
        self, folder: str, collection: Any, config: BackboneConfig, out: Path, options: dict[str, int]
    ) -> None:
        import ray

        with suppress(OSError):  # a machine without this folder can only use absolute names
            os.chdir(folder)
        self.parts = FeatureParts(ray.get(collection), config, out, **options)

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[Any]]:
        """Compute the parts with the given numbers; an error becomes a row, because Ray would repeat the part or wrap the message."""
        found: dict[str, list[Any]] = {"part": [], "images": [], "skipped": [], "error": [], "code": []}
        for number in batch["part"]:
            computed, error, code = (0, 0), "", ""
            try:
                computed = self.parts.compute(int(number))
            except NewkindError as problem:
                error, code = str(problem), problem.code
            for name, value in zip(found, (int(number), *computed, error, code), strict=True):
                found[name].append(value)
        return found


def compute_on_ray(
    collection: Collection,
    config: BackboneConfig,
    out: Path,
    *,
    n_workers: int,
    advance: Callable[[int], None] = quiet,
    **options: int,
) -> ComputedFeatures:
    """Compute all parts that do not exist yet with the workers of a Ray cluster.

    The cluster is the one that the process belongs to or that `RAY_ADDRESS` names, otherwise a local one is started. All machines must
    see the data and the folder under the same names.

    Parameters
    ----------
    collection : Collection
        All images.
    config : BackboneConfig
        Configuration of the backbone.
    out : Path
        Folder of the parts.
    n_workers : int
        Number of workers. Each uses one core, or one GPU if the cluster has any and `config.device` is not the processor.
    advance : callable, optional
        Called with the number of finished images.
    **options : int
        `n_views` and `part_size`, as in `FeatureParts`.

    Returns
    -------
    ComputedFeatures

    Raises
    ------
    DataError
        With the code `missing-package` without Ray, and as from `FeatureParts`.
    """
    try:
        import ray
        import ray.data
    except ImportError:
        raise missing_package(out, "workers on a Ray cluster", "ray", "ray") from None
    out = out.absolute()  # workers have other working directories
    parts = FeatureParts(collection, config, out, **options)
    missing = [number for number in range(parts.count) if not parts.exists(number)]
    advance(len(parts.images) - sum(len(parts.places(number)) for number in missing))
    if missing and not ray.is_initialized():
        ray.init(logging_level=logging.WARNING)
    computed = []
    arguments = (os.getcwd(), ray.put(collection), config, out, options) if missing else ()
    for row in _results(missing, arguments, n_workers, config.device) if missing else ():
        if row["error"]:
            raise DataError(row["error"], code=row["code"])
        computed.append((int(row["images"]), int(row["skipped"])))
        advance(len(parts.places(int(row["part"]))))
    return ComputedFeatures.of(parts, parts.count, parts.count - len(missing), computed)


def _results(numbers: list[int], arguments: tuple[Any, ...], n_workers: int, device: str) -> Iterator[dict[str, Any]]:
    """Rows of `_Worker` for parts, in the order in which they are finished."""
    import ray

    logging.getLogger("ray.data").setLevel(logging.ERROR)  # it warns that its progress bars are off
    ray.data.DataContext.get_current().enable_progress_bars = False
    available = ray.cluster_resources()
    has_gpus = available.get("GPU", 0) > 0 and device != "cpu"
    n_now = max(1, min(n_workers, int(available.get("GPU" if has_gpus else "CPU", 1))))
    blocks = ray.data.from_items(
        [{"part": number} for number in numbers],
        override_num_blocks=min(len(numbers), BLOCKS_PER_WORKER * n_workers),
    )
    yield from blocks.map_batches(
        _Worker,
        fn_constructor_args=arguments,
        batch_size=1,
        compute=ray.data.ActorPoolStrategy(min_size=n_now, max_size=n_workers),
        num_cpus=1,
        num_gpus=1 if has_gpus else None,
    ).iter_rows()
