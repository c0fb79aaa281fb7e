"""`newkind estimate-k`: estimate the number of categories."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from newkind.cli.options import WITHOUT_TOKENS, Data, config_options
from newkind.config import BackboneConfig
from newkind.reading import ReadingConfig

if TYPE_CHECKING:
    from newkind.clustering.estimate import Estimate
    from newkind.data import Collection

__all__ = ["estimate_k"]


@config_options(backbone=(BackboneConfig, WITHOUT_TOKENS), reading=ReadingConfig)
def estimate_k(
    data: Data,
    backbone: BackboneConfig,
    reading: ReadingConfig,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the score against K: estimate-k.json and estimate-k.svg.")
    ] = None,
    published: Annotated[
        bool, typer.Option("--published", help="Use the published search, to compare with the literature. Slow.")
    ] = False,
    search: Annotated[
        str, typer.Option(help="Published search: brent, or binary as for Herbarium 19.", metavar="brent|binary")
    ] = "brent",
    max_categories: Annotated[int | None, typer.Option(help="Upper bound of the number of categories.")] = None,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
) -> None:
    """Estimate the number of categories, known and new together, with a 90 % interval."""
    import time

    from newkind.atomic import check_folder, make_folder, write_errors
    from newkind.cli.messages import name_options, next_command, print_line
    from newkind.data import find_obstacles, open_data
    from newkind.errors import RunError
    from newkind.experiments.next_command import options_of, shell_command, unused_folder
    from newkind.progress import duration
    from newkind.runs.estimate_file import save_estimate
    from newkind.runs.run import Run

    if out is not None and (out / "estimate-k.json").exists():
        raise RunError(
            f"{out} contains an estimate already. It was not changed.",
            fix="Use another `out`.",
            code="exists",
            folder=out,
        )
    if out is not None:
        check_folder(out)
    collection = open_data(data, **reading.given())
    if obstacles := find_obstacles(collection.catalog.labels, collection.catalog.class_names):
        raise obstacles[0]
    start = time.perf_counter()
    way = search if published else None
    found = _estimate(collection, backbone, search=way, max_categories=max_categories, seed=seed)
    sentence = name_options(found.sentence(), {"n_categories": "--n-categories"})
    print_line(f"{sentence} ({duration(time.perf_counter() - start)})", style="bold")
    if collection.truth is not None:
        print_line(f"The truth has {len(collection.truth.class_names)} classes.")
    if out is not None:
        with write_errors(out):
            make_folder(out)
        save_estimate(Run(out), found)
        print_line(f"Score against K: {out / 'estimate-k.svg'}")
    words = ("newkind", "discover", data, "--out", unused_folder("run"), "--n-categories", str(found.n_categories))
    next_command(shell_command(*words, *options_of(backbone), *options_of(reading)))


def _estimate(
    collection: Collection, backbone: BackboneConfig, *, search: str | None, max_categories: int | None, seed: int
) -> Estimate:
    from newkind.clustering.n_categories import estimate_n_categories
    from newkind.clustering.published_search import estimate_by_search
    from newkind.pipeline.estimate_n_categories import backbone_features
    from newkind.progress import status_console

    found = backbone_features(collection, backbone)
    labels, n_known = collection.catalog.labels[found.images], collection.catalog.n_known_classes
    with status_console().status("Estimating the number of categories ..."):
        if search is not None:
            most = 1000 if max_categories is None else max_categories
            return estimate_by_search(
                found.features, labels, n_known=n_known, seed=seed, max_categories=most, search=search
            )
        return estimate_n_categories(found.features, labels, n_known=n_known, seed=seed, max_categories=max_categories)
