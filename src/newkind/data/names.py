"""File names: a compact sequence of many, and a form that is safe to print."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

from newkind.terminal import printable

__all__ = ["Names", "printable"]


class Names(Sequence[str]):
    """Immutable sequence of strings, stored as one byte buffer and an array of offsets.

    A list of a million `str` has an object header per string, and forked data-loading workers copy it page by page, because
    reading a Python object writes its reference count; this buffer is shared between processes without copies.

    Parameters
    ----------
    names : iterable of str
        Any strings, including surrogates that stand for bytes of a file name that is not UTF-8.

    Examples
    --------
    >>> names = Names(["a.jpg", "b.jpg"])
    >>> names[1], len(names)
    ('b.jpg', 2)
    """

    __slots__ = ("_buffer", "_offsets")

    def __init__(self, names: Iterable[str]) -> None:
        encoded = [name.encode("utf-8", "surrogatepass") for name in names]
        self._offsets: NDArray[np.int64] = np.zeros(len(encoded) + 1, dtype=np.int64)
        np.cumsum(np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded)), out=self._offsets[1:])
        self._buffer = b"".join(encoded)

    def __len__(self) -> int:
        return len(self._offsets) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Names: ...
    def __getitem__(self, index: int | slice) -> str | Names:
        if isinstance(index, slice):
            return self.take(np.arange(len(self))[index])
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
            raise IndexError(f"name {index} of {len(self)}")
        return self._buffer[self._offsets[index] : self._offsets[index + 1]].decode("utf-8", "surrogatepass")

    def take(self, indices: NDArray[np.integer]) -> Names:
        """Select names.

        Parameters
        ----------
        indices : ndarray of int, shape (n_selected,)
            Positions, in any order.

        Returns
        -------
        Names of length n_selected
        """
        return Names(self[int(i)] for i in indices)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Names):
            return NotImplemented
        return self._buffer == other._buffer and np.array_equal(self._offsets, other._offsets)

    def __hash__(self) -> int:
        return hash((len(self), self._buffer))

    def __repr__(self) -> str:
        return f"<Names: {len(self):,}, {len(self._buffer):,} bytes>"
