"""Coroutines in tests."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def run_alone(work: Coroutine[Any, Any, Any]) -> Any:
    """Result of a coroutine, in a thread of its own: the browser of other tests may have a running loop in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()
