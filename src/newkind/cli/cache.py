"""`newkind cache`: build, list, verify and remove token caches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from newkind.cli.messages import print_line, result_console
from newkind.cli.options import Data, config_options
from newkind.config import BackboneConfig
from newkind.effort import EFFORTS
from newkind.progress import data_size
from newkind.reading import ReadingConfig

if TYPE_CHECKING:
    from rich.table import Table

    from newkind.backbone.cache_folders import StoredCache

__all__ = ["app"]


class _BuildByDefault(TyperGroup):
    """`newkind cache DATA` means `newkind cache build DATA`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["build", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=_BuildByDefault, no_args_is_help=True, help="Build, list, verify and remove token caches.")


@app.command()
@config_options(backbone=(BackboneConfig, {"views": EFFORTS["thorough"].views}), reading=ReadingConfig)
def build(
    data: Data,
    backbone: BackboneConfig,
    reading: ReadingConfig,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be computed, and stop.")] = False,
) -> None:
    """Compute the tokens of all images with the frozen part of the backbone and store them (features with --tuned-blocks 0).

    They are those that `discover --effort thorough` needs. Published methods need --trunk-precision fp32 --patch-tokens 0 --views 8. The same
    command resumes a build that was interrupted.
    """
    from newkind.backbone.loader import load_backbone, merge_half
    from newkind.backbone.precision import choose_precision
    from newkind.backbone.sources import announce_cache, open_cache
    from newkind.data import open_data

    collection, backbone = open_data(data, **reading.given()), merge_half(choose_precision(backbone))
    loaded = load_backbone(backbone, download=not dry_run)
    if dry_run:
        announce_cache(collection, backbone, loaded)
        return
    cache = open_cache(collection, backbone, loaded)
    n_images = int(cache.usable.sum())
    what = "Tokens" if backbone.tuned_blocks else "Features"
    folders = ", ".join(str(part.store.folder) for part in cache.parts)
    print_line(f"{what} of {n_images:,} image{'s' * (n_images != 1)}: {folders}")


@app.command("list")
def list_() -> None:
    """List the token caches on this machine."""
    from newkind.backbone.cache_folders import list_caches
    from newkind.paths import cache_dir

    caches = list_caches()
    if not caches:
        print_line(f"No token cache in {cache_dir('tokens')}.")
        return
    result_console().print(_table(caches))
    size = sum(cache.gigabytes for cache in caches)
    print_line(f"{data_size(1e9 * size)} in {cache_dir('tokens')}. Remove a cache with: newkind cache prune NAME")


def _table(caches: list[StoredCache]) -> Table:
    """One row per cache."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("Cache", no_wrap=True)  # a name that can be copied
    for title in ("Images", "Size"):
        table.add_column(title, justify="right", no_wrap=True)
    for title in ("Content", "Backbone", "Data"):
        table.add_column(title, overflow="fold")
    for cache in caches:
        n_images = f"{cache.n_images:,}" if cache.readable else "?"
        content = cache.content if cache.readable else "unreadable"
        cells = (cache.folder.name, n_images, data_size(1e9 * cache.gigabytes), content, cache.backbone, cache.place)
        table.add_row(*(Text(cell) for cell in cells))
    return table


@app.command()
def verify(
    names: Annotated[
        list[str] | None, typer.Argument(help="Names of caches, as printed by `list`. Default: all caches.")
    ] = None,
) -> None:
    """Read token caches as a whole and compare them with their checksums."""
    from newkind.backbone.cache_folders import list_caches, verify_cache
    from newkind.errors import CacheError

    damaged = []
    for name in names or [cache.folder.name for cache in list_caches()]:
        try:
            found = verify_cache(name)
            state = f"damaged, {len(found):,} record{'s' * (len(found) != 1)}" if found else "intact"
        except CacheError as error:
            if error.code == "unknown-cache":
                raise
            state = f"damaged ({error.what})"
        damaged += [name] if state != "intact" else []
        print_line(f"{name}: {state}")
    if damaged:
        raise CacheError(
            f"{len(damaged)} of the token caches {'is' if len(damaged) == 1 else 'are'} damaged.",
            fix=f"Remove what is damaged with: newkind cache prune {' '.join(damaged)}",
            code="damaged",
            names=damaged,
        )


@app.command()
def prune(
    names: Annotated[list[str] | None, typer.Argument(help="Names of caches, as printed by `list`.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Remove all caches.")] = False,
) -> None:
    """Remove token caches. They can be built again from the images."""
    from newkind.backbone.cache_folders import list_caches, remove_cache
    from newkind.errors import CacheError

    if names and everything:
        raise CacheError(
            "Names of caches and --all cannot be used together.", fix="Leave out one of the two.", code="conflict"
        )
    chosen = [cache.folder.name for cache in list_caches()] if everything else names or []
    if not chosen and not everything:
        raise CacheError(
            "No cache was named.",
            fix="Name caches as printed by: newkind cache list. To remove all of them: newkind cache prune --all",
            code="nothing-named",
        )
    for name in chosen:
        print_line(f"Removed {name} ({data_size(1e9 * remove_cache(name))}).")
