"""Evidence of groups: the same category for all, the right one, and labels that decide."""

from types import SimpleNamespace

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from newkind.methods.method import Batch, LossTerms, Method, MethodConfig
from newkind.pipeline.predict import probabilities
from newkind.training.group_evidence import SMALLEST, GroupEvidence
from newkind.training.inference import Layout, predict_features
from newkind.training.network import Network


def shared(p: torch.Tensor, groups: list[int], labels: list[int], *, part: int = 100) -> torch.Tensor:
    evidence = GroupEvidence(np.array(groups, dtype=np.int64), torch.tensor(labels))
    parts = [slice(i, i + part) for i in range(0, len(p), part)]
    for rows in parts:
        evidence.add(p[rows], rows)
    return torch.cat([evidence.share(p[rows], rows) for rows in parts])


def test_the_majority_of_the_evidence_decides() -> None:
    p = torch.tensor([[0.9, 0.1], [0.4, 0.6], [0.4, 0.6], [0.1, 0.9]])
    found = shared(p, [5, 5, 5, -1], [-1] * 4)
    expected = p[:3].log().mean(dim=0).softmax(dim=0)
    assert torch.allclose(found[:3], expected.expand(3, 2))
    assert found[0].argmax() == 0  # two weak votes against a strong one
    assert torch.equal(found[3], p[3])


def test_one_image_that_is_wrong_and_sure_does_not_outvote_ten() -> None:
    p = torch.tensor([[1.0, 0.0]] + [[0.1, 0.9]] * 10)
    assert shared(p, [0] * 11, [-1] * 11).argmax(dim=1).tolist() == [1] * 11


def test_a_label_decides_for_its_group_and_keeps_its_own_probabilities() -> None:
    p = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3]])
    found = shared(p, [0, 0, 0], [1, -1, -1])
    assert torch.equal(found[0], p[0])
    assert found[1:].tolist() == [[0.0, 1.0], [0.0, 1.0]]


def test_labels_that_contradict_each_other_do_not_decide() -> None:
    p = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]])
    found = shared(p, [0, 0, 0], [1, 0, -1])
    assert torch.allclose(found[2], p.log().mean(dim=0).softmax(dim=0))


@settings(max_examples=60, deadline=None)
@given(data=st.data(), n=st.integers(1, 30), k=st.integers(1, 5), part=st.integers(1, 9))
def test_groups_agree_whatever_the_parts(data: st.DataObject, n: int, k: int, part: int) -> None:
    groups = data.draw(st.lists(st.integers(-1, 6), min_size=n, max_size=n))
    classes = data.draw(st.lists(st.integers(0, k - 1), min_size=7, max_size=7))
    is_labelled = data.draw(st.lists(st.booleans(), min_size=n, max_size=n))
    labels = [classes[g] if given and g >= 0 else -1 for g, given in zip(groups, is_labelled, strict=True)]
    p = torch.rand(n, k, generator=torch.Generator().manual_seed(n)).softmax(dim=1)
    found = shared(p, groups, labels, part=part)
    assert torch.allclose(found.sum(dim=1), torch.ones(n), atol=1e-5)
    free = [i for i in range(n) if labels[i] < 0]
    for i in free:
        for j in free:
            if groups[i] == groups[j] >= 0:
                assert torch.equal(found[i], found[j])
    for i in range(n):
        if groups[i] < 0 or groups.count(groups[i]) == 1:
            assert torch.equal(found[i], p[i])
    assert float(p.min()) > SMALLEST


class LogitsAsFeatures(Method):
    """A method whose probabilities are the softmax of the features."""

    def logits(self, features: torch.Tensor) -> torch.Tensor:
        return features

    def loss_terms(self, features: torch.Tensor, batch: Batch) -> LossTerms:
        raise AssertionError


def merged_first_two() -> tuple[Network, Layout]:
    """A network with three prototypes, and a layout of two categories: the first two prototypes are one."""
    return Network(None, LogitsAsFeatures(3, 3, MethodConfig())), Layout(
        torch.tensor([0, 0, 1]), torch.tensor([True, False])
    )


def test_a_group_is_assigned_to_a_category_not_to_a_prototype() -> None:
    network, layout = merged_first_two()
    p = torch.tensor([[0.97, 1e-5, 0.02], [1e-5, 0.97, 0.02]])
    arguments = {"labels": np.array([-1, -1]), "layout": layout, "device": torch.device("cpu")}
    for groups in (None, np.array([0, 0])):
        found = predict_features(network, p.log(), groups=groups, **arguments)
        assert found.best.tolist() == [0, 0]
        model = SimpleNamespace(network=network, layout=layout, categories=["a", "b"])
        alone = probabilities(model, p.log().numpy(), groups=groups)  # type: ignore[arg-type]
        assert alone.argmax(axis=1).tolist() == [0, 0]


def test_the_label_of_a_group_is_a_category() -> None:
    network, layout = merged_first_two()
    features = torch.tensor([[0.1, 0.1, 0.8], [0.5, 0.4, 0.1]]).log()
    found = predict_features(
        network,
        features,
        labels=np.array([1, -1]),
        layout=layout,
        device=torch.device("cpu"),
        groups=np.array([0, 0]),
    )
    assert found.best.tolist() == [1, 1]
    assert found.best_probability[1] == 1
