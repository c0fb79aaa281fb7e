"""`newkind features`: compute the features of images, by one or several workers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from newkind.cli.options import WITHOUT_TOKENS, Data, config_options
from newkind.config import BackboneConfig
from newkind.reading import ReadingConfig

if TYPE_CHECKING:
    from newkind.data import Collection
    from newkind.pipeline.compute_features import ComputedFeatures

__all__ = ["features"]

OUT = "Folder of the features, which `discover` opens as data. The same command completes it after an interruption."
SHARD = "Number of this worker, from 0, and number of workers, which share the folder. Default: 0/1."
RAY = "Number of workers on a Ray cluster, one core or GPU each, to which the work is given. Default: no Ray."
VIEWS = "Number of random views per image that are averaged with the evaluation view."


@config_options(backbone=(BackboneConfig, WITHOUT_TOKENS), reading=ReadingConfig)
def features(
    data: Data,
    out: Annotated[Path, typer.Option("--out", help=OUT)],
    backbone: BackboneConfig,
    reading: ReadingConfig,
    shard: Annotated[str | None, typer.Option(help=SHARD, metavar="I/N")] = None,
    views: Annotated[int, typer.Option(help=VIEWS, min=0)] = 2,
    part_size: Annotated[int, typer.Option(help="Number of images per file.", min=1)] = 1024,
    ray_workers: Annotated[int | None, typer.Option(help=RAY, min=1)] = None,
) -> None:
    """Compute features of images into a folder that several machines can fill, without a network between them."""
    import logging

    from newkind import distributed
    from newkind.cli.messages import next_command, print_line
    from newkind.data import open_data
    from newkind.data.wording import count, shell_quoted

    distributed.init_from_environment()
    options = {"n_views": views, "part_size": part_size}
    collection = open_data(data, **reading.given())
    if ray_workers is None:
        found = _own_share(collection, backbone, out, shard, options)
    else:
        found = _on_ray(collection, backbone, out, shard, ray_workers, options)
    if distributed.main_process():
        logger = logging.getLogger(__name__)
        if found.n_found:
            logger.info(f"{count(found.n_found, 'part')} of {found.n_parts} existed already.")
        skipped = f", {found.n_skipped:,} could not be read" if found.n_skipped else ""
        logger.info(f"Features of {count(found.n_images, 'image')} computed{skipped}.")
        print_line(f"Results: {out}")
        if found.is_complete:
            next_command(f"newkind discover {shell_quoted(str(out))} --out RUN")
    distributed.shutdown()


def _own_share(
    collection: Collection, backbone: BackboneConfig, out: Path, shard: str | None, options: dict[str, int]
) -> ComputedFeatures:
    """Compute the parts of this worker, or under torchrun of this process of it."""
    from newkind import distributed
    from newkind.pipeline.compute_features import FeatureParts, compute_features
    from newkind.process_failure import clear_message
    from newkind.progress import progress_bar
    from newkind.shard import Shard

    own = Shard.parse(shard or "0/1").divided(rank=distributed.rank(), n_processes=distributed.world_size())
    n_own, show = len(collection.catalog) // own.count, distributed.main_process()
    with clear_message(), progress_bar("Computing features", n_own, show=show) as advance:
        return compute_features(FeatureParts(collection, backbone, out, **options), shard=own, advance=advance)


def _on_ray(
    collection: Collection,
    backbone: BackboneConfig,
    out: Path,
    shard: str | None,
    n_workers: int,
    options: dict[str, int],
) -> ComputedFeatures:
    """Compute all parts on a Ray cluster."""
    from newkind.errors import ConfigError
    from newkind.pipeline.ray_features import compute_on_ray
    from newkind.progress import progress_bar

    if shard is not None:
        raise ConfigError(
            "`shard` does not apply to a Ray cluster, which divides the work itself.",
            fix="Leave it out.",
            code="unused-option",
            setting="shard",
        )
    with progress_bar("Computing features", len(collection.catalog)) as advance:
        return compute_on_ray(collection, backbone, out, n_workers=n_workers, advance=advance, **options)
