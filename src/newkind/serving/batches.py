"""Micro-batches: images of many requests are computed together, and no more are taken than fit in the queue."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from newkind.data.prefetch import n_cpus
from newkind.errors import BrokenImage
from newkind.export.onnx_model import ImageModel
from newkind.runs.assignment import Assignment

__all__ = ["Batches", "Overloaded", "Unreadable"]


class Overloaded(Exception):
    """More images than the queue has places for."""


@dataclass(frozen=True)
class Unreadable:
    """An image that cannot be decoded.

    Parameters
    ----------
    reason : str
        Why.
    """

    reason: str


@dataclass
class _Waiting:
    """A prepared image and who waits for its answer."""

    name: str
    pixels: NDArray[np.uint8]
    answer: asyncio.Future[Assignment]


class Batches:
    """Computes images in batches, in one thread; decodes them in others.

    Parameters
    ----------
    model : ImageModel
        The model.
    max_queue : int
        Most images that are decoded, wait or are computed at a time.
    max_wait : float
        Longest time in seconds that an image waits for others, if the batch is not full.
    min_confidence : float, default=0.0
        Images with a lower confidence get the status `unsure`.
    """

    def __init__(self, model: ImageModel, *, max_queue: int, max_wait: float, min_confidence: float = 0.0) -> None:
        self.model, self.max_queue, self.max_wait = model, max_queue, max_wait
        self.min_confidence = min_confidence
        self.n_inside = self.n_batches = self.n_computed = 0
        self._decoders = ThreadPoolExecutor(n_cpus(), thread_name_prefix="decode")
        self._computer = ThreadPoolExecutor(1, thread_name_prefix="compute")
        self._queue: asyncio.Queue[_Waiting] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start to compute, in the running event loop."""
        self._task = asyncio.create_task(self._work())

    async def stop(self) -> None:
        """Stop after all images in the queue are answered."""
        while self.n_inside:
            await asyncio.sleep(0.01)
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        self._decoders.shutdown()
        self._computer.shutdown()

    async def predict(self, images: list[tuple[str, bytes]]) -> list[Assignment | Unreadable]:
        """Answers to the images of a request, in order; Overloaded if there is no place for all of them."""
        if self.n_inside + len(images) > self.max_queue:
            raise Overloaded
        self.n_inside += len(images)
        try:
            return await asyncio.gather(*(self._predict(name, content) for name, content in images))
        finally:
            self.n_inside -= len(images)

    async def _predict(self, name: str, content: bytes) -> Assignment | Unreadable:
        loop = asyncio.get_running_loop()
        try:
            pixels = await loop.run_in_executor(self._decoders, lambda: self.model.prepare(content, name=name))
        except BrokenImage as error:
            return Unreadable(str(error.facts.get("reason", error.what)))
        waiting = _Waiting(name, pixels, loop.create_future())
        self._queue.put_nowait(waiting)
        return await waiting.answer

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            batch = await self._collect()
            try:
                pixels = [item.pixels for item in batch]
                answers = await loop.run_in_executor(self._computer, self.model.answer, pixels)
                for row, item in enumerate(batch):
                    if not item.answer.done():  # done if the client went away
                        made = self.model.assignment(item.name, answers, row, min_confidence=self.min_confidence)
                        item.answer.set_result(made)
            except Exception as error:  # noqa: BLE001 - the requests fail with it, and the server stays
                for item in batch:
                    if not item.answer.done():
                        item.answer.set_exception(error)
            self.n_batches += 1
            self.n_computed += len(batch)

    async def _collect(self) -> list[_Waiting]:
        """A full batch, or what arrived within the waiting time after the first image."""
        batch = [await self._queue.get()]
        loop = asyncio.get_running_loop()
        end = loop.time() + self.max_wait
        while len(batch) < self.model.images_per_batch:
            try:
                batch.append(self._queue.get_nowait())
            except asyncio.QueueEmpty:
                left = end - loop.time()
                if left <= 0 or self.n_inside <= len(batch):  # the queue has no other image
                    break
                with suppress(TimeoutError):
                    batch.append(await asyncio.wait_for(self._queue.get(), left))
        return batch
