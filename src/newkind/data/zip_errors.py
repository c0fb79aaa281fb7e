"""What zipfile raises for a damaged archive; its documentation does not list it."""

from __future__ import annotations

import zipfile
import zlib

try:
    from lzma import LZMAError
except ImportError:  # Python can be built without lzma, and then reads no such member
    LZMAError = zlib.error  # type: ignore[misc, assignment]

__all__ = ["ZIP_ERRORS"]

ZIP_ERRORS = (
    zipfile.BadZipFile, zlib.error, LZMAError, OSError, EOFError, ValueError, RuntimeError, NotImplementedError,
)  # fmt: skip
"""OSError is that of damaged bzip2 data, RuntimeError that of encrypted members, NotImplementedError that of other compressions."""
