"""Recipe of the views of a backbone: its image size, and the normalisation with which its weights were trained."""

from __future__ import annotations

from collections.abc import Iterable

from newkind.config import BackboneConfig
from newkind.data.crops import IMAGENET_MEAN, IMAGENET_STD, ViewRecipe

__all__ = ["own_normalisation", "recipe_of"]


def recipe_of(config: BackboneConfig) -> ViewRecipe:
    """Recipe of the views of a backbone, with the mean and standard deviation that timm has for its weights, or else ImageNet's."""
    if config.random_weights:
        return ViewRecipe(image_size=config.image_size)
    import timm  # slow to import, and not needed for ready features

    try:
        found = timm.get_pretrained_cfg(config.name, allow_unregistered=True)
    except RuntimeError:  # weights that timm does not have; `build_vit` refuses them
        found = None
    if found is None:
        return ViewRecipe(image_size=config.image_size)
    return ViewRecipe(image_size=config.image_size, mean=_three(found.mean), std=_three(found.std))


def own_normalisation(recipe: ViewRecipe) -> dict[str, list[float]]:
    """Mean and standard deviation, unless they are ImageNet's: results of earlier versions, which used these, keep their keys."""
    if (recipe.mean, recipe.std) == (IMAGENET_MEAN, IMAGENET_STD):
        return {}
    return {"mean": list(recipe.mean), "std": list(recipe.std)}


def _three(values: Iterable[float]) -> tuple[float, float, float]:
    red, green, blue = map(float, values)
    return red, green, blue
