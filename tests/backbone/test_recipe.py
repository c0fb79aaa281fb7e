"""Images are normalised as for the training of the backbone's weights."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

from newkind.backbone.cache_plan import CacheKey
from newkind.backbone.recipe import own_normalisation, recipe_of
from newkind.backbone.sources import open_source, plan_caches
from newkind.config import DEFAULT_BACKBONE, BackboneConfig
from newkind.data.crops import ViewRecipe
from newkind.data.views import evaluation_view, resize_for_views

HALF = (0.5, 0.5, 0.5)
CLIP = ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711))


@pytest.mark.parametrize(
    ("name", "mean", "std"),
    [
        ("vit_base_patch16_224.augreg2_in21k_ft_in1k", HALF, HALF),
        ("vit_tiny_patch16_224", HALF, HALF),
        ("vit_base_patch16_clip_224.openai", *CLIP),
    ],
)
def test_normalisation_of_other_backbones(name: str, mean: tuple[float, ...], std: tuple[float, ...]) -> None:
    recipe = recipe_of(BackboneConfig(name=name, image_size=112))
    assert (recipe.mean, recipe.std, recipe.image_size) == (mean, std, 112)
    assert own_normalisation(recipe) == {"mean": list(mean), "std": list(std)}


@pytest.mark.parametrize(
    "name", [DEFAULT_BACKBONE, "vit_base_patch16_224.dino", "no_such_model", "vit_tiny_patch16_224.none"]
)
def test_backbones_with_the_normalisation_of_imagenet_keep_their_keys(name: str) -> None:
    recipe = recipe_of(BackboneConfig(name=name))
    assert recipe == ViewRecipe(image_size=224)
    assert own_normalisation(recipe) == {}


def test_random_weights_have_the_normalisation_of_imagenet() -> None:
    recipe = recipe_of(BackboneConfig(name="vit_tiny_patch16_224", random_weights=True))
    assert recipe == ViewRecipe(image_size=224)


def test_the_cache_of_the_default_backbone_has_its_former_key() -> None:
    key = CacheKey(
        backbone=DEFAULT_BACKBONE, weights_sha256="0", n_tuned=1, recipe=recipe_of(BackboneConfig()), n_views=8, seed=0
    )
    assert key.folder("data").name == "data-2bb63c6383fe"


def test_tokens_are_those_of_normalised_views(collection, config, backbone) -> None:
    recipe = ViewRecipe(image_size=32, mean=HALF, std=HALF)
    backbone = replace(backbone, recipe=recipe)
    assert plan_caches(collection, config, backbone)[0].key.recipe == recipe
    views = [evaluation_view(resize_for_views(collection.catalog.items.open(i), recipe), recipe) for i in range(3)]
    expected = backbone.trunk(torch.stack(views))
    for online in (True, False):
        source = open_source(collection, config, backbone, online=online)
        (found,) = source.evaluation_batches(iter([np.arange(3)]))
        torch.testing.assert_close(found.tokens.cls, expected.cls, atol=1e-4, rtol=1e-4)


def test_a_store_of_another_normalisation_is_not_used(collection, config, backbone) -> None:
    open_source(collection, config, backbone)
    other = replace(backbone, recipe=ViewRecipe(image_size=32, mean=HALF, std=HALF))
    (plan,) = plan_caches(collection, config, other)
    assert len(plan.todo) == len(collection.catalog)


def test_ready_features_need_no_timm() -> None:
    code = (
        "import sys, numpy as np, newkind.api; from newkind.data import from_features; from newkind.config import BackboneConfig\n"
        "from newkind.backbone.sources import open_source; import newkind.backbone.loader, newkind.experiments.cells\n"
        "open_source(from_features(np.eye(3), [0, 1, -1]), BackboneConfig(), None)\n"
        "assert 'timm' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
