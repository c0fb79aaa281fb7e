"""The steps of the ablation and the cells of the pilot study: what each value of SimGCD's config changes, and what it leaves."""

from dataclasses import replace
from itertools import permutations
from math import log

import numpy as np
import pytest
import torch
from torch import Tensor

from error_codes import raises
from newkind.errors import ConfigError
from newkind.methods.simgcd import SimGCD, SimGCDConfig
from small_training import DIM, K, batch_of, features_of, small_method, softmax

LABELS = [0, -1, 2, -1, -1, 0]
TRUTH = [0, 4, 2, 1, -1, 0]
"""One is unknown even to the oracle."""
CLASSIFICATION = ("distil", "entropy", "self_label", "supervised")


def variant(**settings) -> SimGCD:
    method = small_method("simgcd", **settings).double()
    with torch.no_grad():  # the projector starts so small that everything would look alike
        for parameter in method.projector.parameters():
            parameter *= 20
    return method


def parts_of(method: SimGCD, features: Tensor, **more) -> dict[str, Tensor]:
    return method.loss_terms(features, batch_of(LABELS, truth=torch.tensor(TRUTH), **more)).parts


@pytest.mark.parametrize(
    ("supervision", "parts"),
    [
        ("self-distil", {"infonce", "supcon", "supervised", "distil", "entropy"}),
        ("self-label", {"infonce", "supcon", "supervised", "self_label"}),
        ("minimal", {"infonce", "supcon", "supervised"}),
        ("oracle", {"infonce", "supcon", "supervised"}),
    ],
)
def test_what_the_classifier_learns_from(supervision: str, parts: set[str]) -> None:
    method = variant(supervision=supervision)
    terms = method.loss_terms(features_of(12), batch_of(LABELS, truth=torch.tensor(TRUTH)))
    assert set(terms.parts) == parts
    assert method.config.needs_truth == (supervision == "oracle")
    weights = {"infonce": 0.65, "distil": 0.65, "entropy": 0.65, "self_label": 0.65, "supcon": 0.35, "supervised": 0.35}
    expected = sum(weights[name] * part.item() for name, part in terms.parts.items())
    assert terms.total().item() == pytest.approx(expected, rel=1e-12)


def test_what_they_share_is_the_same() -> None:
    features = features_of(12)
    found = [parts_of(variant(supervision=s), features) for s in ("self-distil", "self-label", "minimal", "oracle")]
    for name in ("infonce", "supcon"):
        assert len({parts[name].item() for parts in found}) == 1
    assert len({parts["supervised"].item() for parts in found[:3]}) == 1
    assert found[3]["supervised"].item() != found[0]["supervised"].item()


@pytest.mark.parametrize("n_views", [2, 3])
def test_the_self_label_is_the_other_view_s_sinkhorn(n_views: int) -> None:
    method, features = variant(supervision="self-label"), features_of(n_views * 6)
    found = parts_of(method, features, n_views=n_views)["self_label"].item()
    views = method.logits(features).detach().numpy().reshape(n_views, 6, K)
    free, targets = [i for i in range(6) if LABELS[i] < 0], []
    for view in views:
        q = np.exp(view[free] / 0.05)
        for _ in range(3):
            q = q / q.sum(axis=0) / K
            q = q / q.sum(axis=1, keepdims=True) / 3
        target = np.eye(K)[LABELS]  # labelled samples keep their class
        target[free] = 3 * q
        targets.append(target)
    log_p = np.log(softmax(views / 0.1))
    expected = [-(targets[v][i] @ log_p[w, i]) for v, w in permutations(range(n_views), 2) for i in range(6)]
    assert found == pytest.approx(np.mean(expected), rel=1e-5)


@pytest.mark.parametrize("classifier_on", ["backbone", "projector"])
def test_the_oracle_knows_the_truth_and_the_others_do_not(classifier_on: str) -> None:
    features = features_of(12)
    for supervision, labels in (("oracle", TRUTH), ("minimal", LABELS), ("self-distil", LABELS)):
        method = variant(supervision=supervision, classifier_on=classifier_on)
        p = softmax(method.logits(features).detach().numpy() / 0.1)
        expected = [-log(p[6 * v + i][label]) for v in range(2) for i, label in enumerate(labels) if label >= 0]
        assert parts_of(method, features)["supervised"].item() == pytest.approx(np.mean(expected), rel=1e-9)


@pytest.mark.parametrize("supervision", ["self-distil", "self-label", "minimal", "oracle"])
@pytest.mark.parametrize("classifier_on", ["backbone", "projector"])
@pytest.mark.parametrize("joint", [True, False])
def test_the_classifier_s_gradient_reaches_the_representation_only_if_joint(
    supervision: str, classifier_on: str, joint: bool
) -> None:
    method = variant(supervision=supervision, classifier_on=classifier_on, joint=joint)
    features = features_of(12).requires_grad_()
    parts = parts_of(method, features)
    loss = torch.stack([part for name, part in parts.items() if name in CLASSIFICATION]).sum()
    inputs = [features, *method.projector.parameters(), method.classifier.prototypes]
    of_features, *of_projector, of_prototypes = torch.autograd.grad(loss, inputs, retain_graph=True, allow_unused=True)
    assert of_prototypes.abs().sum() > 0
    assert (of_features is not None and bool(of_features.abs().sum() > 0)) == joint
    through = joint and classifier_on == "projector"
    assert [grad is not None and bool(grad.abs().sum() > 0) for grad in of_projector] == [through] * len(of_projector)
    (of_contrast,) = torch.autograd.grad(parts["infonce"], features)
    assert of_contrast.abs().sum() > 0  # the representation learns from its own terms in any case


def test_where_the_prototypes_live() -> None:
    on_backbone, on_projector = variant(classifier_on="backbone"), variant(classifier_on="projector")
    assert on_backbone.classifier.prototypes.shape == (K, DIM)
    assert on_projector.classifier.prototypes.shape == (K, 256)
    features = features_of(5)
    expected = on_projector.classifier(on_projector.projector(features))
    torch.testing.assert_close(on_projector.logits(features), expected)


def test_self_labels_stand_in_for_any_batch() -> None:
    method = variant(supervision="self-label")
    for labels in ([-1] * 6, [0, 1, 2, 0, 1, 2]):
        features = features_of(12).requires_grad_()
        method.loss_terms(features, batch_of(labels)).total().backward()
        assert features.grad.isfinite().all()


def test_the_oracle_without_a_truth_has_only_labels() -> None:
    method, features = variant(supervision="oracle"), features_of(12)
    found = method.loss_terms(features, batch_of(LABELS)).parts["supervised"]
    assert found.item() == parts_of(variant(supervision="minimal"), features)["supervised"].item()


@pytest.mark.parametrize("bad", [{"supervision": "guess"}, {"classifier_on": "moon"}, {"teacher_shape": "round"}])
def test_bad_values(bad: dict) -> None:
    with raises(ConfigError, "unknown-choice"):
        replace(SimGCDConfig(), **bad)
