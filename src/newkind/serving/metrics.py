"""Counters of the service in Prometheus' text format."""

from __future__ import annotations

from collections import Counter

from newkind.serving.batches import Batches

__all__ = ["Metrics"]

BOUNDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the histogram of request times in seconds."""


class Metrics:
    """What the service has done since it started."""

    def __init__(self) -> None:
        self.requests: Counter[int] = Counter()
        self.images: Counter[str] = Counter()
        self._seconds = 0.0
        self._below: Counter[float] = Counter()

    def add_request(self, code: int, seconds: float) -> None:
        """Count a request to predict, by the code of its response."""
        self.requests[code] += 1
        self._seconds += seconds
        for bound in BOUNDS:
            self._below[bound] += seconds <= bound

    def text(self, batches: Batches) -> str:
        """All metrics."""
        total = sum(self.requests.values())
        lines = [
            "# HELP newkind_requests_total Requests to predict, by status code.",
            "# TYPE newkind_requests_total counter",
            *(f'newkind_requests_total{{code="{code}"}} {n}' for code, n in sorted(self.requests.items())),
            "# HELP newkind_images_total Images, by the status of their result.",
            "# TYPE newkind_images_total counter",
            *(f'newkind_images_total{{status="{status}"}} {n}' for status, n in sorted(self.images.items())),
            "# HELP newkind_batches_total Batches that were computed.",
            "# TYPE newkind_batches_total counter",
            f"newkind_batches_total {batches.n_batches}",
            "# HELP newkind_batch_images_total Images in these batches.",
            "# TYPE newkind_batch_images_total counter",
            f"newkind_batch_images_total {batches.n_computed}",
            "# HELP newkind_queue_images Images in the queue, those in computation included.",
            "# TYPE newkind_queue_images gauge",
            f"newkind_queue_images {batches.n_inside}",
            "# HELP newkind_request_seconds Time of requests to predict.",
            "# TYPE newkind_request_seconds histogram",
            *(f'newkind_request_seconds_bucket{{le="{bound:g}"}} {self._below[bound]}' for bound in BOUNDS),
            f'newkind_request_seconds_bucket{{le="+Inf"}} {total}',
            f"newkind_request_seconds_sum {self._seconds:.6f}",
            f"newkind_request_seconds_count {total}",
        ]
        return "\n".join(lines) + "\n"
