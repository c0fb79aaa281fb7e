"""The folded block against timm's own block and norm: outputs and all gradients."""

from typing import Any

import pytest
import timm
import torch
from torch import Tensor, nn

from newkind.backbone.folded import FoldedBlock, normalise_tokens
from newkind.backbone.vit import split

CASES = {
    "plain": ("vit_tiny_patch16_224", {"img_size": 64}),
    "no qkv bias": ("vit_tiny_patch16_224", {"img_size": 64, "qkv_bias": False}),
    "layer scale": ("vit_tiny_patch16_224", {"img_size": 96, "init_values": 1e-3}),
    "q/k norm": ("vit_tiny_patch16_224", {"img_size": 64, "qk_norm": True}),
    "norm and gate inside the attention": ("vit_tiny_patch16_224", {"img_size": 64, "scale_attn_norm": True}),
    "dino v1 size": ("vit_small_patch16_224.dino", {"img_size": 64}),
    "dinov2": ("vit_small_patch14_dinov2.lvd142m", {"img_size": 70}),
    "dinov2 with registers": ("vit_small_patch14_reg4_dinov2.lvd142m", {"img_size": 70}),
    "dinov3": ("vit_small_patch16_dinov3", {"img_size": 64}),
    "dinov3 with biases": ("vit_small_patch16_dinov3_qkvb", {"img_size": 64}),
    "eva with q/k norm and separate projections": (
        "eva02_tiny_patch14_224",
        {"img_size": 56, "qkv_fused": False, "qk_norm": True, "use_rot_pos_emb": False},
    ),
}


def shaken(name: str, **arguments: Any) -> Any:
    """A model whose parameters are all different from their neat starting values."""
    torch.manual_seed(0)
    model = timm.create_model(name, pretrained=False, num_classes=0, **arguments).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.05 * torch.randn_like(parameter)
    return model


def relative(found: Tensor, expected: Tensor) -> float:
    return float((found - expected).detach().norm() / expected.detach().norm())


def rotary(model: Any) -> Tensor | None:
    return None if getattr(model, "rope", None) is None else model.rope.get_embed(shape=model.patch_embed.grid_size)


def gradients(output: Tensor, direction: Tensor, parameters: list[nn.Parameter]) -> list[Tensor]:
    found = torch.autograd.grad((output * direction).sum(), parameters, allow_unused=True)
    return [torch.zeros_like(p) if g is None else g for g, p in zip(found, parameters, strict=True)]


def largest_difference(found: list[Tensor], expected: list[Tensor]) -> float:
    """Relative to each tensor's norm; a gradient that is zero but for rounding counts against the largest one."""
    largest = max(float(e.norm()) for e in expected)
    return max(
        float((f - e).norm()) / max(float(e.norm()), 1e-3 * largest) for f, e in zip(found, expected, strict=True)
    )


@pytest.mark.parametrize("case", CASES)
def test_outputs_and_gradients_are_timms(case: str) -> None:
    name, arguments = CASES[case]
    model = shaken(name, **arguments)
    block, rope = model.blocks[-1], rotary(model)
    x = 2 * torch.randn(3, model.patch_embed.num_patches + model.num_prefix_tokens, model.embed_dim) + 0.3
    parameters = list(block.parameters())
    full = model.norm(block(x) if rope is None else block(x, rope=rope))[:, 0]
    folded = FoldedBlock(block, model.norm, rope=rope)(normalise_tokens(x, block.norm1.eps), x[:, 0])
    assert relative(folded, full) < 1e-5
    direction = torch.randn_like(full)
    assert largest_difference(gradients(folded, direction, parameters), gradients(full, direction, parameters)) < 1e-5


@pytest.mark.parametrize("dtype", [torch.bfloat16])
def test_under_autocast_it_is_as_near_to_the_truth_as_timms_block(dtype: torch.dtype) -> None:
    model = shaken("vit_small_patch14_dinov2.lvd142m", img_size=70)
    block = model.blocks[-1]
    x = torch.randn(8, 26, 384)
    exact = model.norm(block(x))[:, 0]
    folded = FoldedBlock(block, model.norm)
    with torch.autocast("cpu", dtype=dtype):
        theirs = model.norm(block(x))[:, 0].float()
        ours = folded(normalise_tokens(x, block.norm1.eps), x[:, 0]).float()
    assert relative(ours, exact) < 2 * relative(theirs, exact) + 1e-3
    assert relative(ours, exact) < 0.02


@pytest.mark.parametrize("n_tuned", [1, 2, 3])
@pytest.mark.parametrize(
    "name", ["vit_tiny_patch16_224", "vit_small_patch14_reg4_dinov2.lvd142m", "vit_small_patch16_dinov3"]
)
def test_a_split_model_gives_timms_class_feature(name: str, n_tuned: int) -> None:
    size = 70 if "patch14" in name else 64
    images = torch.randn(2, 3, size, size)
    model = shaken(name, img_size=size)
    expected = model.forward_features(images)[:, 0]
    trunk, tuned = split(model, n_tuned=n_tuned)
    tokens = trunk(images)
    assert (tokens.moments is not None) == (n_tuned > 1)
    assert not tokens.xhat.requires_grad
    feature = tuned(tokens)
    assert relative(feature, expected) < 1e-5
    feature.sum().backward()
    assert all(p.grad is not None for n, p in tuned.named_parameters() if "last.norm" not in n)
    assert all(p.grad is None and not p.requires_grad for p in trunk.parameters())
    assert not any(p.requires_grad for p in tuned.last.norm.parameters())


def test_gradients_of_two_tuned_blocks_are_timms() -> None:
    images = torch.randn(2, 3, 64, 64)
    model = shaken("vit_tiny_patch16_224", img_size=64)
    reference = shaken("vit_tiny_patch16_224", img_size=64)
    parameters = [*reference.blocks[-2].parameters(), *reference.blocks[-1].parameters()]
    output = reference.forward_features(images)[:, 0]
    direction = torch.randn_like(output)
    expected = gradients(output, direction, parameters)
    trunk, tuned = split(model, n_tuned=2)
    ours = [*tuned.full[0].parameters(), *tuned.last.block.parameters()]
    assert largest_difference(gradients(tuned(trunk(images)), direction, ours), expected) < 1e-5
