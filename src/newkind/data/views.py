"""Views of an image: random views for training, and one view for evaluation.

The recipe is the published one: the shorter side is resized to 256 pixels (bicubic), a 224-pixel square is cropped, flipped
horizontally with probability 0.5, and normalised with ImageNet's mean and standard deviation. (The released code also
lists a colour jitter, of strength zero.) Images of more than three times these 256 pixels are reduced by averaging first.
"""

from __future__ import annotations

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from newkind.data.crops import (
    IMAGENET_MEAN,
    IMAGENET_STD,
    Crop,
    ViewRecipe,
    centre_crop,
    numbered_crop,
    random_crop,
    resize_image,
    view_generator,
)

__all__ = [
    "IMAGENET_MEAN",
    "IMAGENET_STD",
    "ViewRecipe",
    "evaluation_view",
    "numbered_view",
    "random_view",
    "random_views",
    "resize_for_views",
    "view_generator",
]


def resize_for_views(image: Image.Image, recipe: ViewRecipe) -> Tensor:
    """Resize an image to uint8 (3, H, W), the shorter side `recipe.resized` pixels; all views are cropped from it."""
    return torch.from_numpy(np.array(resize_image(image, recipe))).permute(2, 0, 1)


def random_view(resized: Tensor, recipe: ViewRecipe, generator: np.random.Generator) -> Tensor:
    """Random crop, flipped with probability `recipe.mirror`, normalised: float32 (3, S, S)."""
    return _cropped(resized, recipe, random_crop(resized.shape[1], resized.shape[2], recipe, generator))


def evaluation_view(resized: Tensor, recipe: ViewRecipe) -> Tensor:
    """Centre crop, normalised: float32 (3, S, S)."""
    return _cropped(resized, recipe, centre_crop(resized.shape[1], resized.shape[2], recipe))


def random_views(n_views: int) -> tuple[int, ...]:
    """Numbers of the first `n_views` random views; the number of the evaluation view is 0."""
    return tuple(range(1, n_views + 1))


def numbered_view(resized: Tensor, recipe: ViewRecipe, number: int, *, seed: int, content: bytes) -> Tensor:
    """View of a number: float32 (3, S, S). Random views depend only on the seed, the number and the digest `content`."""
    height, width = resized.shape[1:]
    return _cropped(resized, recipe, numbered_crop(height, width, recipe, number, seed=seed, content=content))


def _cropped(resized: Tensor, recipe: ViewRecipe, crop: Crop) -> Tensor:
    """Crop of a resized image (3, H, W), scaled to zero mean and unit standard deviation per channel."""
    size = recipe.image_size
    view = resized[:, crop.top : crop.top + size, crop.left : crop.left + size]
    view = view.flip(-1) if crop.is_mirrored else view
    mean = torch.tensor(recipe.mean).view(3, 1, 1)
    std = torch.tensor(recipe.std).view(3, 1, 1)
    return (view.float() / 255 - mean) / std
