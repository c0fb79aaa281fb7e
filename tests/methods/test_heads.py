"""The wide layer against its outputs, formed; and the linear classifier when categories are merged."""

import pytest
import torch
from torch.nn import functional as F

from newkind.methods.heads import LinearClassifier, Projector, WideLayer


@pytest.mark.parametrize("width", [6, 100, 3000], ids=["fewer rows than dimensions", "more", "many more"])
def test_cosines_of_the_wide_layer_are_those_of_its_outputs(width: int) -> None:
    torch.manual_seed(0)
    layer = WideLayer(16, width).double()
    z = torch.randn(9, 16, dtype=torch.float64, requires_grad=True)
    found = layer(z)
    outputs = z @ (layer.rows / layer.rows.norm(dim=1, keepdim=True)).T  # (9, width)
    outputs = outputs / outputs.norm(dim=1, keepdim=True)
    torch.testing.assert_close(found @ found.T, outputs @ outputs.T)
    weights = torch.randn(9, 9, dtype=torch.float64)
    ours = torch.autograd.grad((found @ found.T * weights).sum(), [z, layer.rows])
    theirs = torch.autograd.grad((outputs @ outputs.T * weights).sum(), [z, layer.rows])
    torch.testing.assert_close(ours, theirs)


def test_at_the_start_the_wide_layer_hardly_changes_cosines() -> None:
    """Rows in all directions: W^T W is nearly a multiple of the identity."""
    torch.manual_seed(0)
    z = F.normalize(torch.randn(50, 32), dim=1)
    found = WideLayer(32, 65536)(z)
    assert (found @ found.T - z @ z.T).abs().max() < 0.02


def test_a_projector_has_it_behind_its_layers() -> None:
    projector = Projector(12, hidden=16, out=8, width=100)
    plain = F.normalize(projector.layers(torch.ones(3, 12)), dim=1)
    torch.testing.assert_close(projector(torch.ones(3, 12)), projector.wide(plain))
    assert Projector(12).wide is None


def test_merged_rows_are_weighted_means() -> None:
    torch.manual_seed(0)
    head, x = LinearClassifier(5, 4), torch.randn(7, 5)
    before = head(x).detach()
    head.merge([[1], [0, 3]], [30, 1, 1, 10])
    torch.testing.assert_close(head(x)[:, 0], before[:, 1])
    torch.testing.assert_close(head(x)[:, 1], (3 * before[:, 0] + before[:, 3]) / 4)
