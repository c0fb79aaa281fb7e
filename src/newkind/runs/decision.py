"""One decision of a person about a run, and the event that records it."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import Field, dataclass, fields
from typing import Any, TypedDict

from newkind.errors import RunError
from newkind.schema import InvalidJson, parse_json

__all__ = ["KINDS", "Decision", "Event", "Kind", "event_from_json"]

LONGEST_NAME = 200
REFIT_NAME = re.compile("[0-9a-z]{1,40}")


@dataclass(frozen=True)
class Kind:
    """Content of one kind of decision.

    Parameters
    ----------
    required : tuple of str
        Fields that must not be empty.
    optional : tuple of str, default=()
        Fields that may be given.
    """

    required: tuple[str, ...]
    optional: tuple[str, ...] = ()


KINDS = {
    "rename": Kind(("category", "name")),
    "merge": Kind(("categories",), ("into",)),
    "split": Kind(("category", "groups"), ("ids",)),
    "move": Kind(("files",), ("into", "name", "ids")),
    "approve": Kind((), ("category", "files", "name", "without")),
    "reject": Kind(("category", "files")),
    "junk": Kind(("files",)),
    "note": Kind(("text",), ("category", "files")),
    "undo": Kind((), ("event",)),
    "redo": Kind((), ("event",)),
    "refit": Kind(("refit",)),
}


@dataclass(frozen=True)
class Decision:
    """A decision. Which fields it has depends on its kind, see `KINDS`.

    Parameters
    ----------
    kind : str
        `rename`, `merge`, `split`, `move`, `approve`, `reject`, `junk`, `note`, `undo`, `redo` or `refit`.
    category : str, default=""
        Id of the category that is renamed, split, approved, rejected or noted.
    categories : tuple of str, default=()
        Ids of the categories that are merged.
    into : str, default=""
        Id of the category that others are merged into, or that images are moved to. When it is recorded, it is never
        empty; a move without it opens a new category.
    name : str, default=""
        New name of a category; an approval may give it, too.
    files : tuple of str, default=()
        Names of images.
    groups : tuple of tuple of str, default=()
        Names of the images of each new category of a split. Other images of the category stay; if none would stay, the
        first group does.
    ids : tuple of str, default=()
        Ids of new categories; chosen when the decision is recorded.
    without : tuple of str, default=()
        Names of images that are rejected: from a category when all its other images are approved, or each from its own category
        when other images (`files`) are approved in theirs.
    text : str, default=""
        Text of a note.
    event : int, default=0
        Number of the event that is undone or redone. Default: the last one.
    refit : str, default=""
        Name of an accepted refit in the folder `refits` of the run.

    Raises
    ------
    RunError
        With the code `invalid-decision` or `invalid-name`.

    Examples
    --------
    >>> Decision("rename", category="new-03", name="Samoyed").to_json()
    {'kind': 'rename', 'category': 'new-03', 'name': 'Samoyed'}
    """

    kind: str
    category: str = ""
    categories: tuple[str, ...] = ()
    into: str = ""
    name: str = ""
    files: tuple[str, ...] = ()
    groups: tuple[tuple[str, ...], ...] = ()
    ids: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    text: str = ""
    event: int = 0
    refit: str = ""

    def __post_init__(self) -> None:
        kind = KINDS.get(self.kind) if isinstance(self.kind, str) else None
        if kind is None:
            raise _invalid(f"{self.kind!r} is not a kind of decision: {', '.join(KINDS)}.")
        for field in fields(self)[1:]:
            value = getattr(self, field.name)
            if not _has_type(value, field):
                raise _invalid(f"`{field.name}` of a decision has the wrong type.")
            if value and field.name not in (*kind.required, *kind.optional):
                raise _invalid(f"The decision `{self.kind}` has no `{field.name}`.")
            if not value and field.name in kind.required:
                raise _invalid(f"The decision `{self.kind}` needs `{field.name}`.")
        if self.kind == "approve" and not (self.category or self.files or self.without):
            raise _invalid("The decision `approve` needs `category`, `files` or `without`.")
        if self.kind == "approve" and self.name and (self.files or not self.category):
            raise _invalid("`name` is for the approval of a category with all its other images.")
        if self.kind == "approve" and self.without and self.files and self.category:
            raise _invalid(
                "`without` is for the approval of a category, or of images in their categories, not of both."
            )
        if self.refit and not REFIT_NAME.fullmatch(self.refit):
            raise _invalid("`refit` is not the name of a refit.")
        if self.name:
            object.__setattr__(self, "name", _checked_name(self.name))

    def to_json(self) -> dict[str, Any]:
        """Content as JSON, without empty fields."""
        content = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: _lists(value) for name, value in content.items() if value}

    @classmethod
    def from_json(cls, content: Any) -> Decision:
        """Decision from JSON, as from `to_json`; it may come from anywhere."""
        if not isinstance(content, dict) or not set(content) <= {field.name for field in fields(cls)}:
            raise _invalid("A decision must be a JSON object with the fields of its kind.")
        return cls(**{"kind": None, **{name: _tuples(value) for name, value in content.items()}})


@dataclass(frozen=True)
class Event:
    """A decision as it was recorded.

    Parameters
    ----------
    number : int
        Number in the log, from 1.
    time : str
        Time in UTC, in ISO 8601.
    author : str
        Who decided.
    based_on : int
        Number of the last event that the author had seen; 0 if there was none.
    decision : Decision
        The decision, with all defaults filled in.
    """

    number: int
    time: str
    author: str
    based_on: int
    decision: Decision

    def to_json(self) -> dict[str, Any]:
        """Content as JSON."""
        about = {"number": self.number, "time": self.time, "author": self.author, "based_on": self.based_on}
        return about | {"decision": self.decision.to_json()}


class _EventLine(TypedDict):
    """A line of exported events."""

    number: int
    time: str
    author: str
    based_on: int
    decision: dict[str, Any]


def event_from_json(text: str) -> Event:
    """Event from a line of JSON."""
    try:
        line = parse_json(text, _EventLine)
        decision = Decision.from_json(line["decision"])
        return Event(line["number"], line["time"], line["author"], line["based_on"], decision)
    except InvalidJson as error:
        raise _invalid(f"A line is not an event ({error}).") from None


def _invalid(what: str) -> RunError:
    return RunError(what, code="invalid-decision")


def _has_type(value: Any, field: Field[Any]) -> bool:
    """Whether the value of a field is a text, a number from 0, a tuple of texts, or, for groups, a tuple of such tuples."""
    if isinstance(field.default, int):
        return type(value) is int and value >= 0
    if isinstance(field.default, str):
        return isinstance(value, str)
    parts = value if field.name == "groups" else (value,)
    if not isinstance(parts, tuple):
        return False
    return all(isinstance(part, tuple) and all(isinstance(item, str) for item in part) for part in parts)


def _checked_name(name: str) -> str:
    """Name of a category without space around it."""
    name = name.strip()
    if not name or len(name) > LONGEST_NAME or any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in name):
        raise RunError(
            "The name of a category must not be empty or contain control characters, and has at most "
            f"{LONGEST_NAME} characters.",
            code="invalid-name",
            name=name,
        )
    return name


def _lists(value: Any) -> Any:
    return [_lists(item) for item in value] if isinstance(value, tuple) else value


def _tuples(value: Any) -> Any:
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value
