"""Views against torchvision's own transforms, which the published recipe is written in."""

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision import transforms
from torchvision.transforms import InterpolationMode

from error_codes import raises
from newkind.data.views import ViewRecipe, evaluation_view, random_view, resize_for_views, view_generator
from newkind.errors import DataError

RECIPE = ViewRecipe()


def photograph(width: int, height: int) -> Image.Image:
    coarse = np.random.default_rng(0).integers(0, 255, (9, 12, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)


@pytest.mark.parametrize("size", [(500, 333), (333, 500), (31, 32), (256, 256), (1000, 257)])
def test_evaluation_view_is_torchvisions(size: tuple[int, int]) -> None:
    image = photograph(*size)
    published = transforms.Compose(
        [
            transforms.Resize(256, InterpolationMode.BICUBIC),
            transforms.CenterCrop(224),
            transforms.ToTensor(),
            transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
        ]
    )
    ours = evaluation_view(resize_for_views(image, RECIPE), RECIPE)
    torch.testing.assert_close(ours, published(image), atol=1e-6, rtol=0)


def test_a_random_view_is_a_crop_or_its_mirror_image() -> None:
    resized = resize_for_views(photograph(300, 270), RECIPE)
    plain = ViewRecipe(mirror=0.0)
    mirrored = ViewRecipe(mirror=1.0)
    a = random_view(resized, plain, view_generator(0, b"x", 1))
    b = random_view(resized, mirrored, view_generator(0, b"x", 1))
    torch.testing.assert_close(a.flip(-1), b)
    crops = resized.float().unfold(1, 224, 1).unfold(2, 224, 1)  # every crop there is
    pixels = (a * torch.tensor(RECIPE.std).view(3, 1, 1) + torch.tensor(RECIPE.mean).view(3, 1, 1)) * 255
    distance = (crops.permute(1, 2, 0, 3, 4) - pixels).abs().amax(dim=(2, 3, 4))
    assert distance.min() < 1e-3


def test_crops_reach_every_corner_and_half_are_mirrored() -> None:
    recipe = ViewRecipe(image_size=14, crop_share=0.875)
    resized = torch.arange(256).view(1, 16, 16).expand(3, -1, -1).to(torch.uint8)
    firsts = []
    for i in range(400):
        view = random_view(resized, recipe, view_generator(0, b"x", i))
        value = round(float(view[0, 0, 0] * recipe.std[0] + recipe.mean[0]) * 255)
        firsts.append((value // 16, value % 16))
    rows, columns = zip(*firsts, strict=True)
    assert set(rows) == {0, 1, 2}
    assert set(columns) == {0, 1, 2, 13, 14, 15}
    assert 0.4 < np.mean([c > 8 for c in columns]) < 0.6


def test_randomness_depends_on_content_seed_and_number_only() -> None:
    draw = view_generator(1, b"content", 2).random()
    assert view_generator(1, b"content", 2).random() == draw
    others = {
        view_generator(2, b"content", 2).random(),
        view_generator(1, b"other", 2).random(),
        view_generator(1, b"content", 3).random(),
    }
    assert len(others | {draw}) == 4


def test_a_thin_strip_does_not_fill_the_memory() -> None:
    assert resize_for_views(Image.new("RGB", (4, 20_000)), RECIPE).shape == (3, 4096, 256)


def test_other_sizes_keep_the_ratio() -> None:
    assert ViewRecipe(image_size=168).resized == 192
    with raises(DataError, "out-of-range"):
        ViewRecipe(image_size=224, crop_share=0)


def test_a_large_image_is_reduced_before_it_is_resized() -> None:
    """It looks the same, and an image below the gap is resized as published."""
    plain = ViewRecipe(image_size=28, reducing_gap=1000.0)
    recipe = ViewRecipe(image_size=28)
    assert (recipe.resized, recipe.decoded) == (32, 96)
    large = photograph(800, 600)
    found, exact = (resize_for_views(large, r).float() for r in (recipe, plain))
    assert found.shape == exact.shape == (3, 32, 42)
    assert (found - exact).abs().mean() < 2
    small = photograph(180, 150)
    assert torch.equal(resize_for_views(small, recipe), resize_for_views(small, plain))
