"""Merged tokens against the exact computation where nothing is lost, and against a plain loop."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

import newkind
from error_codes import raises
from newkind.backbone.folded import FoldedBlock, normalise_tokens
from newkind.backbone.loader import load_backbone
from newkind.backbone.merging import merge_tokens
from newkind.backbone.online import OnlineTokens
from newkind.backbone.sources import open_cache
from newkind.backbone.vit import build_vit
from newkind.config import BackboneConfig
from newkind.data import Collection
from newkind.errors import BackboneError, ConfigError


@pytest.fixture(scope="module")
def block() -> FoldedBlock:
    torch.manual_seed(0)
    model = build_vit("vit_tiny_patch16_224", image_size=64)
    for parameter in model.parameters():
        parameter.data.add_(0.05 * torch.randn_like(parameter))
    return FoldedBlock(model.blocks[-1], model.norm)


def tokens(n: int, *, seed: int = 0) -> Tensor:
    return normalise_tokens(torch.randn(3, n, 192, generator=torch.Generator().manual_seed(seed)), 1e-6)


def test_nothing_is_merged_if_there_are_no_more_tokens(block: FoldedBlock) -> None:
    xhat = tokens(17)
    merged = merge_tokens(xhat, n_prefix=1, n_patches=16)
    assert torch.equal(merged.xhat, xhat)
    assert merged.sizes.unique().tolist() == [1]
    torch.testing.assert_close(block(merged.xhat, xhat[:, 0], merged.sizes), block(xhat, xhat[:, 0]))


@torch.no_grad()
def test_equal_tokens_are_merged_without_an_error(block: FoldedBlock) -> None:
    """Each patch four times, in random order: a quarter of the tokens is enough."""
    few = tokens(1 + 8)
    order = torch.randperm(32, generator=torch.Generator().manual_seed(1))
    xhat = torch.cat([few[:, :1], few[:, 1:].repeat(1, 4, 1)[:, order]], dim=1)
    exact, cls = block(xhat, few[:, 0]), few[:, 0]
    merged = merge_tokens(xhat, n_prefix=1, n_patches=16)  # two steps would need equal tokens in both halves
    torch.testing.assert_close(block(merged.xhat, cls, merged.sizes), exact, atol=1e-4, rtol=1e-4)
    wrong = block(merged.xhat, cls)  # without the sizes, unless all of them are equal
    assert merged.sizes[:, 1:].unique().numel() > 1
    assert (wrong - exact).abs().max() > 1e-3


def test_a_group_is_the_mean_of_its_tokens() -> None:
    xhat = tokens(1 + 30)
    for n_patches in (29, 15, 7, 1):
        merged = merge_tokens(xhat, n_prefix=1, n_patches=n_patches)
        assert merged.xhat.shape == (3, 1 + n_patches, 192)
        assert torch.equal(merged.xhat[:, 0], xhat[:, 0])
        assert merged.sizes.sum(dim=1).tolist() == [31, 31, 31]
        total = (merged.xhat * merged.sizes[:, :, None]).sum(dim=1)
        torch.testing.assert_close(total, xhat.sum(dim=1), atol=1e-4, rtol=1e-4)


def test_one_step_is_that_of_a_plain_loop() -> None:
    xhat = tokens(1 + 12, seed=3)
    merged = merge_tokens(xhat, n_prefix=1, n_patches=9)
    for view, found, sizes in zip(xhat[:, 1:].double(), merged.xhat[:, 1:], merged.sizes[:, 1:], strict=True):
        a, b = view[1::2], view[::2]
        pairs = sorted((min((float((x - y).norm()), j) for j, y in enumerate(b)), i) for i, x in enumerate(a))
        groups = [[y] for y in b]
        for (_, j), i in pairs[:3]:
            groups[j].append(a[i])
        expected = torch.stack([torch.stack(group).mean(dim=0) for group in groups] + [a[i] for _, i in pairs[3:]])
        torch.testing.assert_close(found.double(), expected, atol=1e-5, rtol=1e-5)
        assert sizes.tolist() == [len(group) for group in groups] + [1] * (len(pairs) - 3)


def test_equally_near_pairs_are_merged_in_their_order() -> None:
    """Tokens 10 i and 10 i + gap; with two gaps, all smaller ones come first."""
    b = 10 * torch.arange(32.0)
    for gap in (torch.ones(32), torch.tensor([2.0, 1.0]).repeat(16)):
        xhat = torch.stack([b, b + gap], dim=1).flatten()[None, :, None]
        order = sorted(range(32), key=gap.tolist().__getitem__)
        means = b.clone()
        means[order[:24]] += gap[order[:24]] / 2
        found = merge_tokens(xhat, n_prefix=0, n_patches=40).xhat
        assert torch.equal(found[0, :, 0], torch.cat([means, (b + gap)[order[24:]]]))


def test_merged_tokens_are_stored_and_used(collection: Collection, config: BackboneConfig) -> None:
    """At 64 pixels, 16 patches are merged to 4; the cache gives what online tokens give."""
    config = replace(config, image_size=64, patch_tokens=4)
    own = load_backbone(config)
    assert own.trunk.n_tokens == 5
    cache = open_cache(collection, config, own)
    online = OnlineTokens(collection.catalog.items, own.trunk, own.recipe)
    (stored,), (exact,) = (s.evaluation_batches(iter([np.arange(3)]), (0, 2)) for s in (cache, online))
    assert stored.tokens.xhat.shape == (6, 5, 192)
    assert torch.equal(stored.tokens.sizes, exact.tokens.sizes)
    assert stored.tokens.sizes.sum(dim=1).tolist() == [17] * 6
    found, wanted = own.tuned(stored.tokens).detach(), own.tuned(exact.tokens).detach()
    assert (found - wanted).norm() / wanted.norm() < 1e-3  # the error of half precision
    whole = replace(config, patch_tokens=0)
    full = open_cache(collection, whole, load_backbone(whole))
    assert cache.store.folder != full.store.folder
    assert cache.store.layout.record_bytes < 0.4 * full.store.layout.record_bytes


def test_patches_are_not_merged_where_every_token_is_needed(config: BackboneConfig) -> None:
    config = replace(config, image_size=64, patch_tokens=4)
    with raises(ConfigError, "conflict"):
        load_backbone(replace(config, tuned_blocks=2))
    with raises(BackboneError, "unsupported-merging"):
        load_backbone(replace(config, name="vit_small_patch16_dinov3.lvd1689m"))
    assert load_backbone(replace(config, tuned_blocks=0)).trunk.n_patches == 0  # features need no tokens
    assert load_backbone(replace(config, patch_tokens=16)).trunk.n_tokens == 17  # there are no more


def test_a_training_on_merged_tokens(tmp_path: Path, photographs: Path) -> None:
    options = {"backbone": "vit_tiny_patch16_224", "random_weights": True, "image_size": 64, "device": "cpu"}
    (photographs / "unlabelled").mkdir()
    for path in sorted((photographs / "a").iterdir())[:5]:
        path.rename(photographs / "unlabelled" / path.name)
    run = newkind.discover(
        photographs, tmp_path / "run", epochs=1, views=2, patch_tokens=4, n_categories=3, report=False, **options
    )
    assert run.model.config.patch_tokens == 4
    predicted = {Path(line.file).name: line for line in newkind.predict(tmp_path / "run", photographs / "unlabelled")}
    found = {Path(line.file).name: line for line in run.assignments if line.status != "labelled"}
    assert predicted.keys() == found.keys()
    for name, line in found.items():
        assert predicted[name].confidence == pytest.approx(line.confidence, abs=0.02)
