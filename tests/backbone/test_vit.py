"""Which backbones, image sizes and numbers of tuned blocks are accepted."""

import pytest

from error_codes import raises
from newkind.backbone.vit import build_vit, split
from newkind.errors import BackboneError


@pytest.mark.parametrize(
    "name",
    [
        "resnet18",
        "vit_base_patch16_siglip_224",  # no class token
        "swin_tiny_patch4_window7_224",  # not a plain vision transformer
        "vit_small_patch16_rope_mixed_224",  # rotary positions that differ from block to block
    ],
)
def test_what_cannot_be_split_is_refused_with_the_reason(name: str) -> None:
    with raises(BackboneError, "unsupported-backbone") as caught:
        build_vit(name, image_size=224)
    assert caught.value.facts["name"] == name
    assert caught.value.facts["reason"] in caught.value.what


def test_unknown_names() -> None:
    with raises(BackboneError, "unknown-backbone") as caught:
        build_vit("no_such_model", image_size=224)
    assert caught.value.facts["name"] == "no_such_model"


@pytest.mark.parametrize(
    ("name", "image_size", "patch_size", "fitting"),
    [
        ("vit_small_patch14_dinov2.lvd142m", 100, 14, (98, 112)),
        ("vit_small_patch14_dinov2.lvd142m", 225, 14, (224, 238)),
        ("vit_tiny_patch16_224", 9, 16, (16, 32)),
    ],
)
def test_an_image_size_that_does_not_fit_names_the_nearest_ones(name, image_size, patch_size, fitting) -> None:
    with raises(BackboneError, "image-size") as caught:
        build_vit(name, image_size=image_size)
    assert caught.value.facts == {"image_size": image_size, "patch_size": patch_size, "fitting": fitting}
    assert all(str(size) in str(caught.value) for size in fitting)
    for size in fitting:
        build_vit(name, image_size=size)


@pytest.mark.parametrize("n_tuned", [0, 12])
def test_the_number_of_tuned_blocks_is_checked(n_tuned: int) -> None:
    with raises(BackboneError, "tuned-blocks") as caught:
        split(build_vit("vit_tiny_patch16_224", image_size=32), n_tuned=n_tuned)
    assert caught.value.facts == {"n_tuned": n_tuned, "n_blocks": 12}
