"""Iterators that compute items in threads before they are needed, so that images are decoded during computation."""

from __future__ import annotations

import os
import queue
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

__all__ = ["map_ahead", "n_cpus", "prefetch"]

T = TypeVar("T")
R = TypeVar("R")


def n_cpus() -> int:
    """Number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def map_ahead(function: Callable[[T], R], items: Iterable[T], *, n_threads: int, ahead: int) -> Iterator[R]:
    """Like `map`, in order, but `function` runs in threads for up to `ahead` items before they are needed.

    Decoders and tensor operations release the interpreter's lock, so threads decode in parallel.
    """
    pending: deque[Future[R]] = deque()
    with ThreadPoolExecutor(n_threads) as pool:
        try:
            for item in items:
                pending.append(pool.submit(function, item))
                if len(pending) > ahead:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()


def prefetch(items: Iterable[T], *, depth: int = 2) -> Generator[T]:
    """Run an iterator in a separate thread, up to `depth` items ahead. Errors are raised in place of the item."""
    filled: queue.Queue[tuple[str, T | BaseException | None]] = queue.Queue(maxsize=depth)
    stop = threading.Event()

    def put(kind: str, value: T | BaseException | None) -> None:
        while not stop.is_set():
            try:
                filled.put((kind, value), timeout=0.1)
                return
            except queue.Full:
                continue

    def work() -> None:
        try:
            for item in items:
                put("item", item)
                if stop.is_set():
                    return
            put("end", None)
        except BaseException as error:  # noqa: BLE001 - it is raised in the consumer's thread
            put("error", error)

    thread = threading.Thread(target=work, daemon=True, name="newkind-prefetch")
    thread.start()
    try:
        while True:
            kind, value = filled.get()
            if kind == "end":
                return
            if kind == "error":
                raise value  # type: ignore[misc]
            yield value  # type: ignore[misc]
    finally:
        stop.set()
        thread.join()
