"""SimGCD's whole objective against a plain computation from the formulas, and its recipes."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from error_codes import raises
from newkind.errors import ConfigError
from newkind.methods.heads import CosineClassifier, Projector
from newkind.methods.method import Batch
from newkind.methods.simgcd import SimGCD, SimGCDConfig, simgcd_recipe


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def plain_objective(z, logits, labels, n_views, teacher, epsilon, *, release: bool, printed: bool = False) -> float:
    """Loops over anchors and positives, in float64."""
    b = len(labels)
    sample, view, label = np.tile(np.arange(b), n_views), np.repeat(np.arange(n_views), b), np.tile(labels, n_views)
    tau_u, tau_c = (1.0, 0.07) if release else (0.07, 1.0)

    def contrastive(rows, positive, tau):
        losses = []
        for i in rows:
            candidates = [j for j in rows if j != i and (release or view[j] != view[i])]
            below = [j for j in candidates if not (printed and sample[i] == sample[j])]
            denominator = sum(math.exp(z[i] @ z[j] / tau) for j in below)
            own = [j for j in candidates if positive(i, j)]
            if own:
                losses.append(np.mean([-math.log(math.exp(z[i] @ z[j] / tau) / denominator) for j in own]))
        return np.mean(losses)

    everyone = range(n_views * b)
    labelled = [i for i in everyone if label[i] >= 0]
    infonce = contrastive(everyone, lambda i, j: sample[i] == sample[j], tau_u)
    supcon = contrastive(labelled, lambda i, j: label[i] == label[j] and (release or sample[i] != sample[j]), tau_c)
    p, q = softmax(logits / 0.1), softmax(logits / teacher)
    pairs = [(i, j) for i in everyone for j in everyone if sample[i] == sample[j] and view[i] != view[j]]
    distil = np.mean([-(q[j] * np.log(p[i])).sum() for i, j in pairs])
    mean = p.mean(axis=0)
    entropy = math.log(p.shape[1]) + (mean * np.log(mean)).sum()
    supervised = np.mean([-math.log(p[i][label[i]]) for i in labelled])
    return 0.65 * (infonce + distil + epsilon * entropy) + 0.35 * (supcon + supervised)


@pytest.mark.parametrize("recipe", ["release", "paper", "printed"])
@pytest.mark.parametrize("n_views", [2, 3])
def test_objective(recipe: str, n_views: int) -> None:
    torch.manual_seed(0)
    config = simgcd_recipe("release" if recipe == "release" else "paper", benchmark="cub")
    config = replace(config, negatives="printed") if recipe == "printed" else config
    method = SimGCD(16, 7, config).double()
    with torch.no_grad():  # the projector starts so small that everything would look alike
        for parameter in method.projector.parameters():
            parameter *= 20
    features = torch.randn(n_views * 6, 16, dtype=torch.float64)
    labels = torch.tensor([0, 2, 0, -1, -1, 2])
    epoch = 12
    total = method.loss_terms(features, Batch(labels=labels, n_views=n_views, epoch=epoch, n_epochs=200)).total()
    release = recipe == "release"
    progress = epoch / 29
    teacher = 0.07 - 0.03 * progress if release else 0.04 + 0.03 * (1 + math.cos(math.pi * progress)) / 2
    z, logits = method.projector(features).detach().numpy(), method.logits(features).detach().numpy()
    expected = plain_objective(
        z, logits, labels.numpy(), n_views, teacher, 2.0, release=release, printed=recipe == "printed"
    )
    assert total.item() == pytest.approx(expected, rel=1e-9)


def test_a_batch_without_labels_still_has_gradients() -> None:
    method = SimGCD(8, 3, simgcd_recipe("release"))
    features = torch.randn(8, 8, requires_grad=True)
    terms = method.loss_terms(features, Batch(labels=torch.full((4,), -1), n_views=2, epoch=0, n_epochs=5))
    assert terms.parts["supcon"].item() == terms.parts["supervised"].item() == 0
    terms.total().backward()
    assert torch.isfinite(features.grad).all()
    assert features.grad.abs().sum() > 0


def test_heads_are_as_published() -> None:
    torch.manual_seed(0)
    projector = Projector(384)
    assert [(m.in_features, m.out_features) for m in projector.layers if isinstance(m, torch.nn.Linear)] == [
        (384, 2048),
        (2048, 2048),
        (2048, 256),
    ]
    weights = projector.layers[0].weight
    assert weights.std().item() == pytest.approx(0.02, rel=0.02)
    assert all(m.bias.abs().sum() == 0 for m in projector.layers if isinstance(m, torch.nn.Linear))
    torch.testing.assert_close(projector(torch.randn(3, 384)).norm(dim=1), torch.ones(3))
    classifier = CosineClassifier(384, 10)
    reference = torch.nn.Linear(384, 10, bias=False)
    assert classifier.prototypes.abs().max() <= reference.weight.abs().max() * 1.05
    assert classifier.prototypes.std().item() == pytest.approx(reference.weight.std().item(), rel=0.05)
    logits = classifier(5 * torch.randn(4, 384))
    assert logits.abs().max() <= 1
    own = classifier(classifier.prototypes * 3)
    torch.testing.assert_close(own.diagonal(), torch.ones(10))


@pytest.mark.parametrize(
    "bad",
    [{"entropy_weight": -1}, {"supervised_weight": 2}, {"student_temperature": 0}],
)
def test_bad_settings(bad: dict) -> None:
    with pytest.raises(ConfigError):
        SimGCDConfig(**bad)
    with raises(ConfigError, "unknown-recipe"):
        simgcd_recipe("secret")
