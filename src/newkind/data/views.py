"""Views of an image: random views for training, and one view for evaluation.

The recipe is the published one: the shorter side is resized to 256 pixels (bicubic), a 224-pixel square is cropped, flipped
horizontally with probability 0.5, and normalised with ImageNet's mean and standard deviation. (The released code also
lists a colour jitter, of strength zero.) Images of more than three times these 256 pixels are reduced by averaging first.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from newkind.errors import DataError

__all__ = [
    "ViewRecipe",
    "evaluation_view",
    "numbered_view",
    "random_view",
    "random_views",
    "resize_for_views",
    "view_generator",
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


def resize_for_views(image: Image.Image, recipe: ViewRecipe) -> Tensor:
    """Resize an image to uint8 (3, H, W), the shorter side `recipe.resized` pixels; all views are cropped from it."""
    from torchvision.transforms.v2 import functional as TF  # slow to import

    width, height = image.size
    scale = recipe.resized / min(width, height)
    # The longer side is rounded as in torchvision; at most 16 times the shorter one, so that thin strips fit in memory.
    size = (min(int(scale * width), 16 * recipe.resized), min(int(scale * height), 16 * recipe.resized))
    size = (max(size[0], recipe.resized), max(size[1], recipe.resized))
    resized: Tensor = TF.pil_to_tensor(image.resize(size, Image.Resampling.BICUBIC, reducing_gap=recipe.reducing_gap))
    return resized


def random_view(resized: Tensor, recipe: ViewRecipe, generator: np.random.Generator) -> Tensor:
    """Random crop, flipped with probability `recipe.mirror`, normalised: float32 (3, S, S)."""
    size = recipe.image_size
    top = int(generator.integers(0, resized.shape[1] - size + 1))
    left = int(generator.integers(0, resized.shape[2] - size + 1))
    view = resized[:, top : top + size, left : left + size]
    return _normalise(view.flip(-1) if generator.random() < recipe.mirror else view, recipe)


def evaluation_view(resized: Tensor, recipe: ViewRecipe) -> Tensor:
    """Centre crop, normalised: float32 (3, S, S)."""
    from torchvision.transforms.v2 import functional as TF

    return _normalise(TF.center_crop(resized, [recipe.image_size] * 2), recipe)


def random_views(n_views: int) -> tuple[int, ...]:
    """Numbers of the first `n_views` random views; the number of the evaluation view is 0."""
    return tuple(range(1, n_views + 1))


def numbered_view(resized: Tensor, recipe: ViewRecipe, number: int, *, seed: int, content: bytes) -> Tensor:
    """View of a number: float32 (3, S, S). Random views depend only on the seed, the number and the digest `content`."""
    if number == 0:
        return evaluation_view(resized, recipe)
    return random_view(resized, recipe, view_generator(seed, content, number))


def _normalise(view: Tensor, recipe: ViewRecipe) -> Tensor:
    """Scale uint8 pixels (3, S, S) to zero mean and unit standard deviation per channel."""
    mean = torch.tensor(recipe.mean).view(3, 1, 1)
    std = torch.tensor(recipe.std).view(3, 1, 1)
    return (view.float() / 255 - mean) / std
