"""Micro-batches: many requests are computed together, the queue is bounded, and a failure reaches those who wait."""

import asyncio
import io
import threading

import numpy as np
import pytest
from numpy.typing import NDArray
from own_loop import run_alone
from PIL import Image

from newkind.data.crops import ViewRecipe
from newkind.export.onnx_model import Answers, ImageModel
from newkind.runs.assignment import Assignment
from newkind.serving.batches import Batches, Overloaded, Unreadable


class Brightness(ImageModel):
    """A real, tiny model: the brighter an image, the more probable is the second category. It can be held up."""

    def __init__(self) -> None:
        super().__init__(ViewRecipe(image_size=16), (0,), 0, [("dark", "known"), ("bright", "new")])
        self.sizes: list[int] = []
        self.may_go = threading.Event()
        self.may_go.set()

    def compute(self, pixels: NDArray[np.uint8]) -> Answers:
        self.may_go.wait(60)
        self.sizes.append(len(pixels))
        if (pixels == 7).all(axis=(1, 2, 3, 4)).any():
            raise RuntimeError("seven")
        share = pixels.reshape(len(pixels), -1).mean(axis=1) / 255
        return Answers(np.stack([1 - share, share], axis=1).astype(np.float32), None)


def image(value: int) -> bytes:
    content = io.BytesIO()
    Image.new("RGB", (20, 20), (value,) * 3).save(content, "png")
    return content.getvalue()


def test_images_of_many_requests_share_batches_and_keep_their_answers() -> None:
    async def run() -> list[Assignment | Unreadable]:
        batches = Batches(model, max_queue=100, max_wait=5)
        model.may_go.clear()
        batches.start()
        requests = [asyncio.create_task(batches.predict([(str(v), image(v))])) for v in range(0, 250, 10)]
        await asyncio.sleep(0.5)
        model.may_go.set()
        found = [(await request)[0] for request in requests]
        await batches.stop()
        return found

    model = Brightness()
    found = run_alone(run())
    assert [line.file for line in found if isinstance(line, Assignment)] == [str(v) for v in range(0, 250, 10)]
    for line in found:
        assert isinstance(line, Assignment)
        assert line.novelty == pytest.approx(int(line.file) / 255, abs=1e-3)
    assert sum(model.sizes) == 25
    assert max(model.sizes) == model.images_per_batch
    assert len(model.sizes) <= 4


def test_a_full_queue_refuses_and_recovers() -> None:
    async def run() -> None:
        batches = Batches(model, max_queue=3, max_wait=0.01)
        model.may_go.clear()
        batches.start()
        inside = asyncio.create_task(batches.predict([("a", image(1)), ("b", image(2)), ("c", b"broken")]))
        await asyncio.sleep(0.1)
        with pytest.raises(Overloaded):
            await batches.predict([("d", image(3))])
        model.may_go.set()
        first = await inside
        assert isinstance(first[2], Unreadable)
        assert isinstance((await batches.predict([("d", image(3))]))[0], Assignment)
        await batches.stop()
        assert batches.n_inside == 0

    model = Brightness()
    run_alone(run())


def test_a_failing_batch_fails_its_requests_only() -> None:
    async def run() -> None:
        batches = Batches(Brightness(), max_queue=3, max_wait=0.01)
        batches.start()
        with pytest.raises(RuntimeError, match="seven"):
            await batches.predict([("x", image(7))])
        assert isinstance((await batches.predict([("y", image(8))]))[0], Assignment)
        await batches.stop()

    run_alone(run())
