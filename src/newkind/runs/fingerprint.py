"""One fingerprint for everything that is resumed or reused: which settings and data decide a result."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from newkind.config import DiscoverConfig, to_json
from newkind.errors import WeightsError

__all__ = ["deciding_settings", "digest_of", "file_digest"]

UNDECISIVE_TRAINING = ("checkpoint_seconds", "evaluate_every")
UNDECISIVE_BACKBONE = ("device", "weights")


def deciding_settings(config: DiscoverConfig) -> dict[str, Any]:
    """Settings that decide the result, as JSON: not how often it is evaluated or saved, nor on which device.

    The path of a weights file is left out; its content has to be part of the digest.
    """
    plain = to_json(config)
    for name in UNDECISIVE_TRAINING:
        del plain["training"][name]
    for name in UNDECISIVE_BACKBONE:
        del plain["backbone"][name]
    del plain["n_categories"]["from_truth"], plain["effort"]  # the effort only names views and epochs
    del plain["min_confidence"]  # changes only what is written at the end
    return plain


def digest_of(*parts: NDArray[Any] | bytes | str | dict[str, Any] | list[Any] | int | None) -> str:
    """SHA-256 of several parts in order, each preceded by its length, so that no two sequences collide."""
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            content = str(part.dtype).encode() + np.ascontiguousarray(part).tobytes()
        else:
            content = part if isinstance(part, bytes) else json.dumps(part, sort_keys=True).encode()
        digest.update(len(content).to_bytes(8, "little") + content)
    return digest.hexdigest()


@cache
def file_digest(path: Path) -> str:
    """SHA-256 of a weights file."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise WeightsError(
            f"The weights file {path} cannot be read ({error.strerror}).", code="weights-missing", file=path
        ) from None
