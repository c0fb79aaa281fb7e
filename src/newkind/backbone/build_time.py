"""How long views take: reading, decoding and resizing images, and the trunk, measured with a few images of the collection."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from newkind.backbone.decoded_views import opened_with_digest
from newkind.backbone.loader import Backbone
from newkind.backbone.vit import CPU_CHUNK, Trunk
from newkind.data import Images, Skipped
from newkind.data.prefetch import n_cpus
from newkind.data.views import ViewRecipe, numbered_view, resize_for_views
from newkind.errors import BrokenImage

__all__ = ["ViewRates", "measure_rates", "seconds_per_view"]

N_SAMPLES = 8
"""Images that are decoded to measure."""
N_CROPS = 4
"""Views that are cropped from each of them."""


@dataclass(frozen=True, kw_only=True)
class ViewRates:
    """Measured times of computing views.

    Parameters
    ----------
    trunk : float
        Seconds per view in the trunk.
    image : float
        Seconds of one processor per image, to read, decode and resize it.
    crop : float
        Seconds of one processor per view, to crop and normalise it.
    n_cpus : int
        Number of processors. Images are decoded on all of them while the trunk computes.
    n_busy : int
        Number of these processors that the trunk uses as well; 0 for an accelerator.

    Examples
    --------
    >>> on_cpu = ViewRates(trunk=0.1, image=0.4, crop=0.0, n_cpus=2, n_busy=2)  # of 2 processors
    >>> round(on_cpu.seconds(10, 30), 6)
    5.0
    >>> on_gpu = ViewRates(trunk=0.1, image=0.4, crop=0.0, n_cpus=2, n_busy=0)
    >>> round(on_gpu.seconds(10, 30), 6)
    3.0
    """

    trunk: float
    image: float
    crop: float
    n_cpus: int
    n_busy: int

    def seconds(self, n_images: int, n_views: int) -> float:
        """Time of views of images that are decoded once each.

        Parameters
        ----------
        n_images, n_views : int
            Number of images, and of views of all of them together.

        Returns
        -------
        float
        """
        trunk, decoding = n_views * self.trunk, n_images * self.image + n_views * self.crop
        # Images are decoded ahead of the trunk: processors are busy until all is done, unless they wait for an accelerator.
        return max(trunk, (trunk * self.n_busy + decoding) / self.n_cpus)


def measure_rates(images: Images, places: Sequence[int], backbone: Backbone, image_size: int) -> ViewRates:
    """Measure with a few images how long views take.

    Parameters
    ----------
    images : Images
        Images.
    places : sequence of int
        Indices of those whose views are needed. A few of them, spread evenly, are decoded; unreadable ones are left out.
    backbone : Backbone
        Loaded backbone.
    image_size : int
        Side of a view in pixels.

    Returns
    -------
    ViewRates
    """
    recipe, processors = ViewRecipe(image_size=image_size), n_cpus()
    spread = np.linspace(0, len(places) - 1, min(N_SAMPLES, len(places))).round().astype(int).tolist()
    decoded: list[float] = []
    cropped: list[float] = []
    for number, place in enumerate([places[i] for i in spread]):
        if number == 0:
            _timed(images, place, recipe)  # the first one also loads the decoder
        if (found := _timed(images, place, recipe)) is not None:
            decoded.append(found[0])
            cropped.append(found[1])
    return ViewRates(
        trunk=seconds_per_view(backbone.trunk, image_size, device=backbone.device),
        image=float(np.mean(decoded or [0.0])),
        crop=float(np.mean(cropped or [0.0])),
        n_cpus=processors,
        n_busy=min(torch.get_num_threads(), processors) if backbone.device.type == "cpu" else 0,
    )


def _timed(images: Images, place: int, recipe: ViewRecipe) -> tuple[float, float] | None:
    """Seconds of decoding an image and of a view of it; None if it cannot be decoded."""
    try:
        images.content(place)  # into the page cache, where a build finds it: it has read all images to compare them
    except BrokenImage:
        return None
    started = time.perf_counter()
    found = opened_with_digest(images, place, shorter_side=recipe.decoded)
    if isinstance(found, Skipped):
        return None
    resized = resize_for_views(found[0], recipe)
    decoded = time.perf_counter()
    for number in range(N_CROPS):
        numbered_view(resized, recipe, number, seed=0, content=found[1])
    return decoded - started, (time.perf_counter() - decoded) / N_CROPS


def seconds_per_view(trunk: Trunk, image_size: int, *, device: torch.device | str = "cpu") -> float:
    """Measure the time that the trunk takes per view, for estimates of the time that a build takes.

    Parameters
    ----------
    trunk : Trunk
        Frozen part of the backbone, on `device`.
    image_size : int
        Side of a view in pixels.
    device : torch.device or str, default="cpu"
        Device of the trunk.

    Returns
    -------
    float
        Seconds per view, in batches like those of a build; the shortest of three measurements, because other work on the machine
        makes single ones several times too long.
    """
    views = torch.zeros(CPU_CHUNK, 3, image_size, image_size, device=device)
    trunk(views[:1])
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        trunk(views).cls.sum().item()  # the sum waits for the device
        seconds.append(time.perf_counter() - start)
    return min(seconds) / len(views)
