"""Error classes. Each one carries its facts, so that nobody has to parse a sentence."""

from __future__ import annotations

from typing import Any, ClassVar

__all__ = [
    "BackboneError",
    "BenchmarkMissing",
    "BrokenImage",
    "CacheError",
    "ConfigError",
    "DataError",
    "NewkindError",
    "RunError",
    "WeightsError",
]


class NewkindError(Exception):
    """Base class of all errors that a user can fix.

    The command line prints `what` and `fix` and exits with code 2. Texts name parameters as in Python, in backticks
    (`batch_size`); the command line shows them as options (--batch-size).

    Parameters
    ----------
    what : str
        What was wrong: what was found, where, and what was expected.
    fix : str, default=""
        What to do next.
    code : str, default=""
        Stable identifier of the kind of error, such as `unknown-method`. Default: the class's own code.
    **facts : Any
        Values that the text mentions, such as the file or the setting.

    Attributes
    ----------
    what, fix, code : str
        As given.
    facts : dict
        As given.

    Examples
    --------
    >>> error = DataError("photos.csv has no column `file_name`.", code="missing-column", column="file_name")
    >>> error.code, error.facts["column"]
    ('missing-column', 'file_name')
    """

    default_code: ClassVar[str] = "error"

    def __init__(self, what: str, *, fix: str = "", code: str = "", **facts: Any) -> None:
        super().__init__(what)
        self.what = what
        self.fix = fix
        self.code = code or self.default_code
        self.facts = facts

    def __str__(self) -> str:
        return f"{self.what} {self.fix}".strip()


class DataError(NewkindError, ValueError):
    """Images, labels or tables that cannot be used as they are."""

    default_code = "data"


class BenchmarkMissing(DataError):
    """A published dataset is not in the given folder."""

    default_code = "benchmark-missing"


class BrokenImage(DataError):
    """An image that cannot be decoded. It is skipped and reported; the other images are used."""

    default_code = "broken-image"


class BackboneError(NewkindError):
    """A backbone that cannot be used, with the reason."""

    default_code = "backbone"


class WeightsError(NewkindError):
    """Weights that are missing, damaged, or of another architecture."""

    default_code = "weights"


class CacheError(NewkindError):
    """Cached tokens that are damaged or cannot be written."""

    default_code = "cache"


class ConfigError(NewkindError, ValueError):
    """A setting that is invalid, alone or in combination with others."""

    default_code = "config"


class RunError(NewkindError):
    """A run folder that cannot be read or must not be written."""

    default_code = "run"
