"""`newkind rename`, `merge`, `split`, `move`, `approve`, `reject`, `junk`, `note`, `undo`, `redo`: decisions about a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from newkind.cli.options import RunFolder

if TYPE_CHECKING:
    from newkind.runs.answer import Answer
    from newkind.runs.decision import Decision
    from newkind.runs.decisions import Decisions

__all__ = ["approve", "junk", "merge", "move", "note", "redo", "reject", "rename", "split", "undo"]

Category = Annotated[str, typer.Argument(help="Id or name of a category.")]
Images = Annotated[
    list[str] | None, typer.Argument(help="Images, as named in assignments.csv or as paths.", show_default=False)
]
List = Annotated[
    Path | None, typer.Option("--list", help="Text file with one image per line; - for the standard input.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only print what would change.")]
Author = Annotated[
    str | None, typer.Option(help="Who decided. Default: the name of the user.", envvar="NEWKIND_AUTHOR")
]
Number = Annotated[int, typer.Option("--event", help="Number of an event, as in the history. Default: the last one.")]


def rename(
    run: RunFolder,
    category: Category,
    name: Annotated[str, typer.Argument(help="Its new name.")],
    dry_run: DryRun = False,
    author: Author = None,
) -> None:
    """Give a category another name. Its id stays."""
    from newkind.runs.decision import Decision

    _decide(run, Decision("rename", category=category, name=name), dry_run=dry_run, author=author)


def merge(
    run: RunFolder,
    categories: Annotated[list[str], typer.Argument(help="Ids or names of two or more categories.")],
    into: Annotated[
        str,
        typer.Option(help="Category that keeps its name. Default: a known, renamed or approved one, then the largest."),
    ] = "",
    dry_run: DryRun = False,
    author: Author = None,
) -> None:
    """Merge categories into one."""
    from newkind.runs.decision import Decision

    _decide(run, Decision("merge", categories=tuple(categories), into=into), dry_run=dry_run, author=author)


def split(
    run: RunFolder,
    category: Category,
    group: Annotated[
        list[Path] | None,
        typer.Option("--group", help="Text file with the images of one part, one per line; repeat it."),
    ] = None,
    parts: Annotated[
        int,
        typer.Option(help="Number of parts, found by clustering. Default: 2, or up to 6 where they are clearly apart."),
    ] = 0,
    dry_run: DryRun = False,
    author: Author = None,
) -> None:
    """Split a category, by lists of images or by clustering. The first part keeps id and name."""
    from newkind.runs.decision import Decision

    decisions = _open(run)
    if group:
        groups = tuple(_images(decisions, None, path) for path in group)
    else:
        from newkind.pipeline.split import propose_groups

        groups = propose_groups(decisions.run, decisions.answer, category, n=parts or None)
    _decide(decisions, Decision("split", category=category, groups=groups), dry_run=dry_run, author=author)


def move(
    run: RunFolder,
    images: Images = None,
    to: Annotated[str, typer.Option(help="Id or name of a category. Default: a new category.")] = "",
    name: Annotated[str, typer.Option(help="Name of a new category.")] = "",
    list_file: List = None,
    dry_run: DryRun = False,
    author: Author = None,
) -> None:
    """Move images to a category, which confirms that they belong there."""
    from newkind.runs.decision import Decision

    decisions = _open(run)
    decision = Decision("move", files=_images(decisions, images, list_file), into=to, name=name)
    _decide(decisions, decision, dry_run=dry_run, author=author)


def approve(
    run: RunFolder,
    category: Annotated[str, typer.Argument(help="Id or name of a category.", show_default=False)] = "",
    image: Annotated[list[str] | None, typer.Option(help="Only this image; repeat it for several.")] = None,
    list_file: List = None,
    name: Annotated[str, typer.Option(help="New name of the category.")] = "",
    without: Annotated[
        list[str] | None,
        typer.Option(help="Image that does not belong to the category, or to its own; repeat it for several."),
    ] = None,
    dry_run: DryRun = False,
    author: Author = None,
) -> None:
    """Approve a category with all its images, or images only."""
    from newkind.runs.decision import Decision

    decisions = _open(run)
    files = _images(decisions, image, list_file) if image or list_file else ()
    wrong = _images(decisions, without, None)
    decision = Decision("approve", category=category, files=files, name=name, without=wrong)
    _decide(decisions, decision, dry_run=dry_run, author=author)


def reject(
    run: RunFolder,
    category: Category,
    images: Images = None,
    list_file: List = None,
    dry_run: DryRun = False,
    author: Author = None,
) -> None:
    """Record that images do not belong to a category."""
    from newkind.runs.decision import Decision

    decisions = _open(run)
    decision = Decision("reject", category=category, files=_images(decisions, images, list_file))
    _decide(decisions, decision, dry_run=dry_run, author=author)


def junk(
    run: RunFolder, images: Images = None, list_file: List = None, dry_run: DryRun = False, author: Author = None
) -> None:
    """Record that images belong to no category."""
    from newkind.runs.decision import Decision

    decisions = _open(run)
    decision = Decision("junk", files=_images(decisions, images, list_file))
    _decide(decisions, decision, dry_run=dry_run, author=author)


def note(
    run: RunFolder,
    text: Annotated[str, typer.Argument(help="The note.")],
    category: Annotated[str, typer.Option(help="Id or name of the category that it is about.")] = "",
    image: Annotated[list[str] | None, typer.Option(help="Image that it is about; repeat it for several.")] = None,
    author: Author = None,
) -> None:
    """Write a note about a run, a category or images."""
    from newkind.runs.decision import Decision

    decisions = _open(run)
    files = _images(decisions, image, None) if image else ()
    _decide(decisions, Decision("note", text=text, category=category, files=files), dry_run=False, author=author)


def undo(run: RunFolder, event: Number = 0, dry_run: DryRun = False, author: Author = None) -> None:
    """Undo a decision."""
    from newkind.runs.decision import Decision

    _decide(run, Decision("undo", event=event), dry_run=dry_run, author=author)


def redo(run: RunFolder, event: Number = 0, dry_run: DryRun = False, author: Author = None) -> None:
    """Make a decision that was undone count again."""
    from newkind.runs.decision import Decision

    _decide(run, Decision("redo", event=event), dry_run=dry_run, author=author)


def _open(run: str) -> Decisions:
    from newkind.runs.decisions import Decisions
    from newkind.runs.run import Run

    return Decisions(Run.open(Path(run)))


def _images(decisions: Decisions, names: list[str] | None, list_file: Path | None) -> tuple[str, ...]:
    """Names of images as the run has them; they may be given as paths."""
    from newkind.data.list_names import read_names

    known, root = decisions.answer.row, decisions.run.config().get("root")
    found = list(names or []) + ([] if list_file is None else read_names(list_file))
    return tuple(next((own for own in _possible_names(name, root) if own in known), name) for name in found)


def _possible_names(name: str, root: str | None) -> Iterator[str]:
    """Names that a run may have for an image: as it is given, its path, as of an added folder, or relative to the data folder."""
    import os

    yield name
    if "\0" in name:
        return
    for resolved in (os.path.abspath, os.path.realpath):
        path = resolved(name)
        yield path
        for folder in () if root is None else (root, os.path.realpath(root)):
            yield os.path.relpath(path, folder).replace(os.sep, "/")


def _decide(run: str | Decisions, decision: Decision, *, dry_run: bool, author: str | None) -> None:
    """Record a decision, or only show it; print what changed and what to do next."""
    from newkind.cli.messages import next_command, print_line
    from newkind.data.wording import shell_quoted
    from newkind.errors import RunError
    from newkind.runs.describe import describe
    from newkind.runs.write_answer import write_answer

    decisions = _open(run) if isinstance(run, str) else run
    before: Answer | None = None
    with suppress(RunError):  # an undo of a damaged refit has no answer before
        before = decisions.answer
    if dry_run:
        resolved, after = decisions.preview(decision)
        print_line(f"{describe(resolved)}. {_effect(before, after)}")
        print_line("Nothing was recorded (--dry-run).")
        return
    event = decisions.decide(decision, author=author)
    after = write_answer(decisions.run)
    print_line(f"{event.number}: {describe(event.decision)}. {_effect(before, after)}")
    verb = "history" if event.decision.kind in ("undo", "redo", "note") else "refit"
    next_command(f"newkind {verb} {shell_quoted(str(decisions.run.folder))}")


def _effect(before: Answer | None, after: Answer) -> str:
    """How many images changed, and how many categories there are."""
    from newkind.data.wording import count

    if before is None:
        return f"{count(len(after.categories), 'category', 'categories')} now."
    ids = [[*(state.id for state in answer.categories), ""] for answer in (before, after)]
    pairs = zip(before.category.tolist(), after.category.tolist(), strict=True)
    n_moved = sum(ids[0][a] != ids[1][b] for a, b in pairs)
    n_status = int((before.status != after.status).sum())
    parts = [f"{count(n_moved, 'image')} changed category"] if n_moved else []
    parts += [f"{count(n_status, 'image')} changed status"] if n_status else []
    parts += [f"{count(len(after.categories), 'category', 'categories')} now"]
    return f"{', '.join(parts)}."
