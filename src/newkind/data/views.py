"""Views of an image: the random ones that training sees, and the one that is evaluated.

The recipe is the published one: the shorter side to 256 pixels (bicubic), a 224-pixel crop, a mirror image half of
the time, ImageNet's mean and standard deviation. (The released code also names a colour jitter, without strength.)
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torchvision.transforms.v2 import functional as TF

from newkind.errors import DataError

__all__ = ["ViewRecipe", "evaluation_view", "random_view", "resize_for_views", "view_generator"]

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


@dataclass(frozen=True, kw_only=True)
class ViewRecipe:
    """How an image becomes a view."""

    image_size: int = 224
    """Side of the square that the backbone sees."""
    crop_share: float = 0.875
    """The crop's side as a share of the resized image's shorter side (224 of 256 pixels)."""
    mirror: float = 0.5
    """Probability of a mirror image."""
    mean: tuple[float, float, float] = IMAGENET_MEAN
    std: tuple[float, float, float] = IMAGENET_STD

    def __post_init__(self) -> None:
        if self.image_size < 14 or not 0 < self.crop_share <= 1 or not 0 <= self.mirror <= 1:
            raise DataError(
                f"A view needs an image size of at least 14, a crop share in (0, 1] and a mirror probability in [0, 1]; "
                f"got {self.image_size}, {self.crop_share}, {self.mirror}."
            )

    @property
    def resized(self) -> int:
        """The shorter side before cropping."""
        return round(self.image_size / self.crop_share)


def view_generator(seed: int, content: bytes, *numbers: int) -> np.random.Generator:
    """Randomness that depends on the image's content and the view's number only, not on where the image stands."""
    key = hashlib.blake2b(content, key=repr((seed, *numbers)).encode(), digest_size=16).digest()
    return np.random.default_rng(int.from_bytes(key, "little"))


def resize_for_views(image: Image.Image, recipe: ViewRecipe) -> Tensor:
    """The part that all views of an image share: uint8 (3, H, W), its shorter side `recipe.resized` pixels."""
    width, height = image.size
    scale = recipe.resized / min(width, height)
    # The longer side as torchvision rounds it; a thin strip is at most 16 times as long, or it would fill the memory.
    size = (min(int(scale * width), 16 * recipe.resized), min(int(scale * height), 16 * recipe.resized))
    size = (max(size[0], recipe.resized), max(size[1], recipe.resized))
    resized: Tensor = TF.pil_to_tensor(image.resize(size, Image.Resampling.BICUBIC))
    return resized


def random_view(resized: Tensor, recipe: ViewRecipe, generator: np.random.Generator) -> Tensor:
    """A random crop, mirrored half of the time, normalised: fp32 (3, S, S)."""
    size = recipe.image_size
    top = int(generator.integers(0, resized.shape[1] - size + 1))
    left = int(generator.integers(0, resized.shape[2] - size + 1))
    view = resized[:, top : top + size, left : left + size]
    return _normalise(view.flip(-1) if generator.random() < recipe.mirror else view, recipe)


def evaluation_view(resized: Tensor, recipe: ViewRecipe) -> Tensor:
    """The centre crop, normalised: fp32 (3, S, S)."""
    return _normalise(TF.center_crop(resized, [recipe.image_size] * 2), recipe)


def _normalise(view: Tensor, recipe: ViewRecipe) -> Tensor:
    mean = torch.tensor(recipe.mean).view(3, 1, 1)
    std = torch.tensor(recipe.std).view(3, 1, 1)
    return (view.float() / 255 - mean) / std
