"""Error for a file type that needs an optional package."""

from __future__ import annotations

from pathlib import Path

from newkind.errors import DataError

__all__ = ["missing_package"]


def missing_package(path: Path, what: str, package: str, extra: str) -> DataError:
    """DataError that names the package and how to install it."""
    return DataError(
        f"{path}: {what} need the package {package}, which is not installed.",
        fix=f"Install it with: pip install 'newkind[{extra}]'",
        code="missing-package",
        path=str(path),
        package=package,
    )
