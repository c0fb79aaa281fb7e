"""Blocks in bf16 against timm's blocks, and the precision that is chosen when none is asked for."""

from dataclasses import replace

import numpy as np
import pytest
import timm
import torch
from torch.nn import functional as F

from newkind.backbone import bf16_blocks
from newkind.backbone.bf16_blocks import Bf16Blocks
from newkind.backbone.loader import half_of_patches, load_backbone
from newkind.backbone.precision import choose_precision, has_bf16
from newkind.backbone.vit import build_vit, split
from newkind.config import BackboneConfig
from newkind.data import from_arrays
from newkind.effort import Amount
from newkind.pipeline.configure import configure

TINY = BackboneConfig(name="vit_tiny_patch16_224", random_weights=True, image_size=32, device="cpu")
CPU = torch.device("cpu")


@torch.no_grad()
def blocks_of(*, scaled: bool, n: int = 3) -> torch.nn.Sequential:
    """Blocks of timm whose keys have a large common part, as those of trained backbones."""
    torch.manual_seed(0)
    model = timm.create_model("vit_tiny_patch16_224", img_size=32, num_classes=0, init_values=0.7 if scaled else None)
    blocks = model.blocks[:n].eval()
    for block in blocks:
        for parameter in block.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
        block.attn.qkv.bias[192:384] += 10
    return blocks


@pytest.mark.parametrize("scaled", [False, True])
@torch.no_grad()
def test_blocks_are_those_of_timm_but_for_rounding(scaled: bool) -> None:
    blocks = blocks_of(scaled=scaled)
    x = torch.randn(4, 5, 192, generator=torch.Generator().manual_seed(1))
    exact, found = blocks(x), Bf16Blocks(blocks)(x)
    assert found.dtype == torch.float32
    assert F.cosine_similarity(found, exact, dim=-1).min() > 0.9995
    assert not torch.equal(found, exact)


@torch.no_grad()
def test_attention_is_that_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """In float64 there is no rounding: the mean key makes no difference, nor does the number of views that are computed at once."""
    qkv = torch.randn(5, 7, 3 * 4 * 6, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    qkv[:, :, 24:48] += 3
    q, k, v = qkv.view(5, 7, 3, 4, 6).permute(2, 0, 3, 1, 4)
    exact = F.scaled_dot_product_attention(q, k, v, scale=1.0).transpose(1, 2).reshape(5, 7, 24)
    torch.testing.assert_close(bf16_blocks._attention(qkv, 4), exact)
    monkeypatch.setattr(bf16_blocks, "SCORES", 2 * 4 * 7 * 7)
    torch.testing.assert_close(bf16_blocks._attention(qkv, 4), exact)


@torch.no_grad()
def test_centred_keys_make_rounding_errors_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = blocks_of(scaled=False)
    x = torch.randn(4, 30, 192, generator=torch.Generator().manual_seed(3))
    exact, ours = blocks(x), Bf16Blocks(blocks)(x)

    def with_all_of_the_keys(qkv: torch.Tensor, n_heads: int) -> torch.Tensor:
        q, k, v = qkv.view(*qkv.shape[:2], 3, n_heads, -1).permute(2, 0, 3, 1, 4)
        return ((q @ k.transpose(-1, -2)).softmax(dim=-1) @ v).transpose(1, 2).flatten(2)

    monkeypatch.setattr(bf16_blocks, "_attention", with_all_of_the_keys)
    plain = Bf16Blocks(blocks)(x)
    assert (ours - exact).norm() < (plain - exact).norm()


@torch.no_grad()
def test_a_view_hardly_depends_on_the_others_of_its_batch() -> None:
    blocks = Bf16Blocks(blocks_of(scaled=True))
    x = torch.randn(5, 5, 192, generator=torch.Generator().manual_seed(4))
    together = blocks(x)
    for i in range(5):
        assert F.cosine_similarity(blocks(x[i : i + 1])[0], together[i], dim=-1).min() > 0.9999
    assert blocks(x[:0]).shape == (0, 5, 192)


def test_only_plain_blocks_on_a_cpu_are_written_in_another_way() -> None:
    plain = build_vit("vit_tiny_patch16_224", image_size=32).blocks
    assert isinstance(Bf16Blocks.if_plain(plain, rope=None, device=CPU), Bf16Blocks)
    assert Bf16Blocks.if_plain(plain, rope=None, device=torch.device("meta")) is None
    assert Bf16Blocks.if_plain(plain, rope=torch.zeros(1), device=CPU) is None


def test_the_choice_depends_on_the_processor_and_the_method(monkeypatch: pytest.MonkeyPatch) -> None:
    images = from_arrays(np.zeros((4, 8, 8, 3), dtype=np.uint8), [0, 1, -1, -1])
    for bf16, modern in ((True, "bf16"), (False, "fp32")):
        monkeypatch.setattr("newkind.backbone.precision.has_bf16", lambda bf16=bf16: bf16)
        assert configure(images, backbone=TINY).backbone.trunk_precision == modern
        assert configure(images, method="kmeans", backbone=TINY).backbone.trunk_precision == modern
        for published in ({"recipe": "release"}, {"method": "gcd"}):
            assert configure(images, backbone=TINY, **published).backbone.trunk_precision == "fp32"
        asked = replace(TINY, trunk_precision="int8")
        assert configure(images, backbone=asked).backbone.trunk_precision == "int8"
        assert choose_precision(asked) is asked


@pytest.mark.parametrize(("bf16", "amx", "expected"), [(True, False, True), (True, True, False), (False, False, False)])
def test_amx_has_to_be_asked_for(bf16: bool, amx: bool, expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: bf16, raising=False)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: amx, raising=False)
    assert has_bf16() is expected


def test_a_backbone_that_is_loaded_as_it_is_computes_in_fp32() -> None:
    assert load_backbone(replace(TINY, tuned_blocks=0)).trunk.precision == "fp32"
    assert choose_precision(replace(TINY, device="cuda")).trunk_precision == "fp32"  # also where there is none


def test_thorough_stores_half_of_the_patch_tokens() -> None:
    images = from_arrays(np.zeros((4, 8, 8, 3), dtype=np.uint8), [0, 1, -1, -1])

    def stored(effort: str, **asked) -> int | None:
        return configure(images, amount=Amount(effort=effort), backbone=replace(TINY, **asked)).backbone.patch_tokens

    assert half_of_patches(TINY.name, image_size=64) == 8
    assert half_of_patches("vit_small_patch16_dinov3", image_size=64) == 0
    assert stored("thorough") == 2
    assert stored("thorough", patch_tokens=0) == 0
    assert stored("thorough", tuned_blocks=2) is stored("standard") is None
    assert configure(images, method="gcd", backbone=TINY).backbone.patch_tokens is None
    trunk = split(build_vit(TINY.name, image_size=32)).trunk
    trunk.merge_patches(2)
    assert trunk.n_tokens == 3
