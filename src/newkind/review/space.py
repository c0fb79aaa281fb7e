"""Similarity of images by their features, relative to the mean of all images."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict

import numpy as np
from numpy.typing import NDArray

from newkind.report.centres import category_centres, unit_rows

__all__ = ["FeatureSpace"]

CHUNK = 8192
REMEMBERED = 4096  # Groups of images whose centres are kept.
Lines = NDArray[np.int64]


class FeatureSpace:
    """Features of n images, which do not change while categories do.

    Parameters
    ----------
    features : ndarray of float16, shape (n, d)
        Features; may be on disk.
    """

    def __init__(self, features: NDArray[np.float16]) -> None:
        self.features = features
        _, self.mean = category_centres(features, np.zeros(len(features), dtype=np.int32), 1)
        self._centres: OrderedDict[bytes, NDArray[np.float32]] = OrderedDict()
        self._lock = threading.Lock()

    def rows(self, lines: Lines) -> NDArray[np.float32]:
        """Features of images relative to the mean, with length 1, shape (m, d)."""
        return unit_rows(unit_rows(self.features[lines]) - self.mean)

    def centre(self, lines: Lines) -> NDArray[np.float32]:
        """Centre of a group of images, with length 1, shape (d,); remembered, because most categories do not change."""
        key = hashlib.blake2b(lines.tobytes(), digest_size=16).digest()
        with self._lock:
            found = self._centres.get(key)
        if found is None:
            total = np.zeros(self.features.shape[1])
            for start in range(0, len(lines), CHUNK):
                total += unit_rows(self.features[lines[start : start + CHUNK]]).sum(axis=0)
            mean = total / max(len(lines), 1) - (self.mean if len(lines) else 0.0)
            found = unit_rows(mean[None])[0]
            with self._lock:
                self._centres[key] = found
                while len(self._centres) > REMEMBERED:
                    self._centres.popitem(last=False)
        return found

    def similarity(self, lines: Lines, centre: NDArray[np.float32]) -> NDArray[np.float32]:
        """Cosine of images with a centre, shape (m,)."""
        found = np.empty(len(lines), dtype=np.float32)
        for start in range(0, len(lines), CHUNK):
            found[start : start + CHUNK] = self.rows(lines[start : start + CHUNK]) @ centre
        return found
