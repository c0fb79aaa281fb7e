"""What can go wrong, in words for the person who can mend it.

Every message says what was wrong, what was found and what was expected; `fix` says what to do next.
The command line prints both and exits with code 2; a traceback is shown with `--debug` only.
"""

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
    """The base of all errors that a user can mend."""

    def __init__(self, what: str, *, fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.what} {self.fix}".strip()


class DataError(NewkindError, ValueError):
    """The images, labels or tables that were handed over cannot be used as they are."""


class BenchmarkMissing(DataError):
    """A published dataset is not where it was looked for."""


class BrokenImage(DataError):
    """One image cannot be decoded; it is set aside, the others go on."""


class BackboneError(NewkindError):
    """A backbone that cannot be used here, with the reason."""


class WeightsError(NewkindError):
    """Weights that are not there, are damaged, or belong to another architecture."""


class CacheError(NewkindError):
    """Cached tokens that cannot be trusted, or cannot be written."""


class ConfigError(NewkindError, ValueError):
    """A setting that makes no sense, alone or beside the others."""


class RunError(NewkindError):
    """A run folder that cannot be read or must not be written."""
