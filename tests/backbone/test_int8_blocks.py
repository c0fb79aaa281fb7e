"""Blocks in int8 against a plain computation with the same quantisation, and against fp32."""

import sys
from dataclasses import replace

import numpy as np
import pytest
import timm
import torch
from sklearn.datasets import load_sample_images
from torch import Tensor
from torch.nn import functional as F

from error_codes import raises
from newkind.backbone.cache_folders import list_caches
from newkind.backbone.int8_blocks import Int8Blocks, quantise
from newkind.backbone.loader import load_backbone
from newkind.backbone.sources import open_cache
from newkind.backbone.vit import build_vit, split
from newkind.config import DEFAULT_BACKBONE, BackboneConfig
from newkind.data.views import IMAGENET_MEAN, IMAGENET_STD
from newkind.errors import BackboneError, ConfigError
from newkind.paths import cache_dir

REAL_WEIGHTS = cache_dir("weights") / f"{DEFAULT_BACKBONE}.safetensors"
"""The user's, before the tests have a cache folder of their own."""


def test_quantised_weights_are_within_half_a_step() -> None:
    weight = np.random.default_rng(0).normal(size=(30, 7)) * np.geomspace(1e-3, 10, 7)
    weight[:, 2] = 0
    quantised, scales = quantise(weight)
    assert quantised.dtype == np.int8
    assert np.abs(quantised.astype(int)).max(axis=0).tolist() == [127, 127, 0, 127, 127, 127, 127]
    assert (np.abs(quantised * scales.astype(float) - weight) <= 0.5001 * scales).all()


def plain_linear(x: Tensor, layer: torch.nn.Linear, gamma: Tensor | None) -> Tensor:
    """x (1, N, d) with 256 steps for all of it, weights with 255 steps per output, exact product."""
    factor = torch.ones(len(layer.weight)) if gamma is None else gamma
    weight, bias = (factor[:, None] * layer.weight).double(), (factor * layer.bias).double()
    steps = weight.abs().amax(dim=1, keepdim=True) / 127
    low, high = min(float(x.min()), 0.0), max(float(x.max()), 0.0)
    step = (high - low) / 255
    zero = round(-low / step)
    rounded = ((x.double() / step).round() + zero).clamp(0, 255) - zero
    return ((rounded @ (weight / steps).round().T) * step * steps[:, 0] + bias).float()


def plain_block(x: Tensor, block: torch.nn.Module) -> Tensor:
    """A block of timm with `plain_linear` for its linear layers; x (1, N, d)."""
    gammas = [getattr(getattr(block, name), "gamma", None) for name in ("ls1", "ls2")]
    q, k, v = (
        part.unflatten(-1, (block.attn.num_heads, -1)).transpose(1, 2)
        for part in plain_linear(block.norm1(x), block.attn.qkv, None).chunk(3, dim=-1)
    )
    context = ((q @ k.transpose(-2, -1)) * block.attn.scale).softmax(dim=-1) @ v
    x = x + plain_linear(context.transpose(1, 2).flatten(2), block.attn.proj, gammas[0])
    hidden = F.gelu(plain_linear(block.norm2(x), block.mlp.fc1, None))
    return x + plain_linear(hidden, block.mlp.fc2, gammas[1])


def relative_error(found: Tensor, exact: Tensor) -> float:
    return float((found - exact).norm() / exact.norm())


@pytest.mark.parametrize("scaled", [False, True])
@torch.no_grad()
def test_a_block_is_that_of_a_plain_computation(scaled: bool) -> None:
    torch.manual_seed(0)
    model = timm.create_model("vit_tiny_patch16_224", img_size=32, num_classes=0, init_values=0.7 if scaled else None)
    block = model.blocks[0].eval()
    for parameter in block.parameters():
        parameter.add_(0.1 * torch.randn_like(parameter))
    x = torch.randn(3, 5, 192)
    exact = torch.cat([block(view[None]) for view in x])
    plain = torch.cat([plain_block(view[None], block) for view in x])
    found = Int8Blocks([block])(x)
    # A value between two steps can be rounded either way, so the two agree only to a part of the error of int8.
    assert relative_error(plain, exact) > 1e-3
    assert relative_error(found, plain) < relative_error(plain, exact) / 4


@torch.no_grad()
def test_a_view_does_not_depend_on_the_others_of_its_batch() -> None:
    blocks = Int8Blocks(build_vit("vit_tiny_patch16_224", image_size=32).blocks)
    x = torch.randn(5, 5, 192, generator=torch.Generator().manual_seed(0))
    x[3] *= 100
    together = blocks(x)
    for i in range(5):
        torch.testing.assert_close(blocks(x[i : i + 1])[0], together[i], atol=1e-5, rtol=1e-5)
    assert blocks(x[:0]).shape == (0, 5, 192)


@pytest.mark.parametrize("precision", ["bf16", "int8"])
@pytest.mark.parametrize("n_tuned", [0, 1, 2])
def test_a_cheaper_trunk_is_close_to_fp32(precision: str, n_tuned: int, config: BackboneConfig) -> None:
    views = torch.randn(3, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    config = replace(config, tuned_blocks=n_tuned)
    exact, cheap = (load_backbone(replace(config, trunk_precision=p)).trunk(views) for p in ("fp32", precision))
    assert cheap.cls.dtype == cheap.xhat.dtype == torch.float32
    assert F.cosine_similarity(cheap.cls, exact.cls).min() > 0.99
    assert not torch.allclose(cheap.cls, exact.cls, atol=1e-4)
    if n_tuned == 2:
        torch.testing.assert_close(cheap.raw()[:, 0], cheap.cls, atol=1e-4, rtol=1e-4)


@pytest.mark.skipif(not REAL_WEIGHTS.exists(), reason="the weights of DINOv2 ViT-S/14 are not on this machine")
@pytest.mark.parametrize(("precision", "bound"), [("bf16", 0.999), ("int8", 0.97)])
def test_features_of_dinov2_are_close_to_fp32(precision: str, bound: float) -> None:
    """Parts of the two photographs in scikit-learn, at 112 pixels."""
    parts = [p[i : i + 224 : 2, i : i + 224 : 2] for p in load_sample_images().images for i in (0, 100, 200)]
    pixels = torch.from_numpy(np.stack(parts)).permute(0, 3, 1, 2).float() / 255
    views = (pixels - torch.tensor(IMAGENET_MEAN).view(3, 1, 1)) / torch.tensor(IMAGENET_STD).view(3, 1, 1)
    config = BackboneConfig(weights=REAL_WEIGHTS, image_size=112, tuned_blocks=0, device="cpu")
    exact, cheap = (load_backbone(replace(config, trunk_precision=p)).trunk(views).cls for p in ("fp32", precision))
    assert F.cosine_similarity(cheap, exact).min() > bound


def test_features_of_different_precisions_never_mix(collection, config) -> None:
    found = {}
    for precision in ("fp32", "bf16", "int8"):
        own = replace(config, tuned_blocks=0, views=0, trunk_precision=precision)
        cache = open_cache(collection, own, load_backbone(own))
        (batch,) = cache.evaluation_batches(iter([np.arange(4)]))
        found[precision] = batch.tokens.cls
    assert len(list_caches()) == 3
    assert sorted(cache.content for cache in list_caches()) == [
        "features, evaluation view",
        "features, evaluation view, bf16",
        "features, evaluation view, int8",
    ]
    assert not torch.allclose(found["fp32"], found["int8"], atol=1e-4)
    assert not torch.allclose(found["fp32"], found["bf16"], atol=1e-4)


def test_the_key_of_fp32_is_older_than_the_precision(key) -> None:
    assert "precision" not in key.settings()
    assert replace(key, precision="int8").settings()["precision"] == "int8"
    assert replace(key, precision="int8").folder("x") != key.folder("x")


@pytest.mark.parametrize("name", ["vit_small_patch16_dinov3.lvd1689m", "vit_small_patch16_18x2_224"])
def test_a_backbone_that_is_not_plain_is_refused(name: str) -> None:
    if name.startswith("vit_small_patch16_18x2"):
        blocks, rope = timm.create_model(name, num_classes=0, depth=1).blocks, None
    else:
        trunk = split(build_vit(name, image_size=32)).trunk
        blocks, rope = trunk.model.blocks, trunk.rope
    with raises(BackboneError, "unsupported-precision"):
        Int8Blocks(list(blocks), rope=rope)


def test_int8_needs_a_cpu_and_onnxruntime(config: BackboneConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    with raises(ConfigError, "conflict"):
        load_backbone(replace(config, trunk_precision="int8", device="meta"))
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with raises(ConfigError, "missing-package"):
        load_backbone(replace(config, trunk_precision="int8"))
