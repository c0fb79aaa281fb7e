"""Where views lie in an image, without torch: the recipe, resizing, and the place of each numbered crop."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from newkind.errors import DataError

__all__ = [
    "IMAGENET_MEAN",
    "IMAGENET_STD",
    "Crop",
    "ViewRecipe",
    "centre_crop",
    "numbered_crop",
    "random_crop",
    "resize_image",
    "view_generator",
    "view_pixels",
]

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


@dataclass(frozen=True, kw_only=True)
class ViewRecipe:
    """Transformation of an image to a view.

    Parameters
    ----------
    image_size : int, default=224
        Side of the square crop in pixels.
    crop_share : float, default=0.875
        Side of the crop as a share of the shorter side of the resized image (224 of 256 pixels).
    mirror : float, default=0.5
        Probability of a horizontal flip.
    mean, std : tuple of three floats, default: ImageNet's
        Mean and standard deviation per channel, for normalisation.
    reducing_gap : float, default=3.0
        Images that are larger than this many times the resized image are first reduced by averaging, JPEG files while they
        are decoded: decoding and resizing all pixels of a photograph of a telephone takes three times as long as the
        trunk at 112 pixels (benchmarks/build_profile.py).
    """

    image_size: int = 224
    crop_share: float = 0.875
    mirror: float = 0.5
    mean: tuple[float, float, float] = IMAGENET_MEAN
    std: tuple[float, float, float] = IMAGENET_STD
    reducing_gap: float = 3.0

    def __post_init__(self) -> None:
        if self.image_size < 14 or not 0 < self.crop_share <= 1 or not 0 <= self.mirror <= 1:
            raise DataError(
                "`image_size` must be at least 14, `crop_share` in (0, 1] and `mirror` in [0, 1], "
                f"got {self.image_size}, {self.crop_share} and {self.mirror}.",
                code="out-of-range",
            )

    @property
    def resized(self) -> int:
        """Shorter side of the resized image in pixels, before cropping."""
        return round(self.image_size / self.crop_share)

    @property
    def decoded(self) -> int:
        """Shorter side in pixels that a decoded image needs; more pixels make no difference to a view."""
        return math.ceil(self.resized * self.reducing_gap)


def view_generator(seed: int, content: bytes, *numbers: int) -> np.random.Generator:
    """Random generator that depends only on the seed, the content of the image and the numbers of the view."""
    key = hashlib.blake2b(content, key=repr((seed, *numbers)).encode(), digest_size=16).digest()
    return np.random.default_rng(int.from_bytes(key, "little"))


@dataclass(frozen=True)
class Crop:
    """Place of a square crop in a resized image.

    Parameters
    ----------
    top, left : int
        First row and column.
    is_mirrored : bool, default=False
        Whether it is flipped horizontally.
    """

    top: int
    left: int
    is_mirrored: bool = False


def resize_image(image: Image.Image, recipe: ViewRecipe) -> Image.Image:
    """Resize an image such that its shorter side has `recipe.resized` pixels; all views are cropped from it."""
    width, height = image.size
    scale = recipe.resized / min(width, height)
    # The longer side is rounded as in torchvision; at most 16 times the shorter one, so that thin strips fit in memory.
    size = (min(int(scale * width), 16 * recipe.resized), min(int(scale * height), 16 * recipe.resized))
    size = (max(size[0], recipe.resized), max(size[1], recipe.resized))
    return image.resize(size, Image.Resampling.BICUBIC, reducing_gap=recipe.reducing_gap)


def random_crop(height: int, width: int, recipe: ViewRecipe, generator: np.random.Generator) -> Crop:
    """Random place in a resized image, mirrored with probability `recipe.mirror`."""
    size = recipe.image_size
    top = int(generator.integers(0, height - size + 1))
    left = int(generator.integers(0, width - size + 1))
    return Crop(top, left, bool(generator.random() < recipe.mirror))


def centre_crop(height: int, width: int, recipe: ViewRecipe) -> Crop:
    """Centre of a resized image, rounded as in torchvision."""
    size = recipe.image_size
    return Crop(round((height - size) / 2.0), round((width - size) / 2.0))


def numbered_crop(height: int, width: int, recipe: ViewRecipe, number: int, *, seed: int, content: bytes) -> Crop:
    """Place of the view of a number: 0 is the centre; others depend only on the seed, the number and the digest `content`."""
    if number == 0:
        return centre_crop(height, width, recipe)
    return random_crop(height, width, recipe, view_generator(seed, content, number))


def view_pixels(
    image: Image.Image, recipe: ViewRecipe, numbers: tuple[int, ...], *, seed: int, content: bytes
) -> NDArray[np.uint8]:
    """Pixels (n_views, 3, S, S) of numbered views of a decoded image, not normalised."""
    resized = np.asarray(resize_image(image, recipe))  # (H, W, 3)
    height, width, size = *resized.shape[:2], recipe.image_size
    views = []
    for number in numbers:
        crop = numbered_crop(height, width, recipe, number, seed=seed, content=content)
        view = resized[crop.top : crop.top + size, crop.left : crop.left + size]
        views.append((view[:, ::-1] if crop.is_mirrored else view).transpose(2, 0, 1))
    return np.stack(views)
