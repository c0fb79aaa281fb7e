"""`newkind features`: compute the features of images, by one or several workers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from newkind.cli.options import Data, config_options
from newkind.config import BackboneConfig
from newkind.reading import ReadingConfig

__all__ = ["features"]

OUT = "Folder of the features, which `discover` opens as data. The same command completes it after an interruption."
SHARD = "Number of this worker, from 0, and number of workers, which share the folder. Default: 0/1."
VIEWS = "Number of random views per image that are averaged with the evaluation view."


@config_options(backbone=BackboneConfig, reading=ReadingConfig)
def features(
    data: Data,
    out: Annotated[Path, typer.Option("--out", help=OUT)],
    backbone: BackboneConfig,
    reading: ReadingConfig,
    shard: Annotated[str | None, typer.Option(help=SHARD, metavar="I/N")] = None,
    views: Annotated[int, typer.Option(help=VIEWS, min=0)] = 2,
    part_size: Annotated[int, typer.Option(help="Number of images per file.", min=1)] = 1024,
) -> None:
    """Compute features of images into a folder that several machines can fill, without a network between them."""
    import logging

    from newkind import distributed
    from newkind.cli.messages import next_command, print_line
    from newkind.data import open_data
    from newkind.data.wording import count, shell_quoted
    from newkind.pipeline.compute_features import compute_features
    from newkind.progress import progress_bar
    from newkind.shard import Shard

    distributed.init_from_environment()
    own = Shard.parse(shard or "0/1").divided(rank=distributed.rank(), n_processes=distributed.world_size())
    collection = open_data(data, **reading.given())
    with (
        distributed.clear_message(),
        progress_bar(
            "Computing features", len(collection.catalog) // own.count, show=distributed.main_process()
        ) as advance,
    ):
        found = compute_features(
            collection, backbone, out, shard=own, n_views=views, part_size=part_size, advance=advance
        )
        distributed.barrier()
    distributed.shutdown()
    logger = logging.getLogger(__name__)
    if found.n_found:
        logger.info(f"{count(found.n_found, 'part')} of {found.n_parts} existed already.")
    skipped = f", {found.n_skipped:,} could not be read" if found.n_skipped else ""
    logger.info(f"Features of {count(found.n_images, 'image')} computed{skipped}.")
    print_line(f"Results: {out}")
    if found.is_complete:
        next_command(f"newkind discover {shell_quoted(str(out))} --out RUN")
