"""Assertions on errors by class and code, so that their wording can improve."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from newkind.errors import NewkindError

__all__ = ["raises"]


@contextmanager
def raises(kind: type[NewkindError], code: str) -> Iterator[pytest.ExceptionInfo[NewkindError]]:
    """As `pytest.raises`, and the error has this code; the error itself is `.value`, as usual."""
    with pytest.raises(kind) as caught:
        yield caught
    assert caught.value.code == code, f"{caught.value.code}: {caught.value}"
