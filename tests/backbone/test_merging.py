"""Merged tokens against the exact computation where nothing is lost, and against a plain loop."""

import pytest
import torch
from torch import Tensor

from newkind.backbone.folded import FoldedBlock, normalise_tokens
from newkind.backbone.merging import merge_tokens
from newkind.backbone.vit import build_vit


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
