"""Decisions in words, for messages and histories."""

from __future__ import annotations

from newkind.data.wording import count
from newkind.runs.decision import Decision

__all__ = ["describe"]


def describe(decision: Decision) -> str:
    """A recorded decision as a sentence without a full stop.

    Parameters
    ----------
    decision : Decision
        The decision, with all defaults filled in.

    Returns
    -------
    str

    Examples
    --------
    >>> describe(Decision("merge", categories=("new-02", "new-05"), into="new-01"))
    'Merged new-02 and new-05 into new-01'
    """
    d = decision
    images, without = (names[0] if len(names) == 1 else count(len(names), "image") for names in (d.files, d.without))
    if d.kind == "merge":
        return f"Merged {_listed(d.categories)} into {d.into}"
    if d.kind == "split":
        sizes = (f"{name} ({count(len(group), 'image')})" for name, group in zip(d.ids, d.groups, strict=True))
        return f"Split {_listed(tuple(sizes))} from {d.category}"
    if d.kind == "move":
        words = ("the new category" if d.ids else "", d.into or "", d.name or "")
        return f"Moved {images} to {' '.join(word for word in words if word)}"
    if d.kind == "approve" and not d.files:
        if not d.category:
            return f"Rejected {without}"
        ending = f", without {without}" if d.without else ""
        return f"Approved {d.category}{f' as {d.name}' if d.name else ''}{ending}"
    if d.kind == "approve":
        ending = f", rejected {without}" if d.without else ""
        return f"Approved {images}{f' in {d.category}' if d.category else ''}{ending}"
    if d.kind == "note":
        about = d.category or (images if d.files else "")
        return f"Noted{f' about {about}' if about else ''}: {d.text}"
    return {
        "rename": f"Renamed {d.category} to {d.name}",
        "reject": f"Rejected {images} from {d.category}",
        "junk": f"Marked {images} as junk",
        "undo": f"Undid event {d.event}",
        "redo": f"Redid event {d.event}",
        "refit": f"Refitted the model ({d.refit})",
    }[d.kind]


def _listed(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
