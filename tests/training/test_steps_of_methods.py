"""Whole trainings of six steps from given weights, against the same in plain torch (plain_steps.py)."""

from itertools import permutations
from math import log
from pathlib import Path

import pytest
import torch
from plain_steps import BATCH, DIM, EPOCHS, N_KNOWN, K, Parameters, Tuned, cosines, plain_features, plain_train, train
from torch import Tensor
from torch.nn.functional import gelu, one_hot

from newkind.losses import random_partners
from newkind.methods.registry import build_method, method_config
from newkind.training.network import Network

Views = tuple[Tensor, Tensor]


def network_of(name: str, **settings) -> Network:
    torch.manual_seed(3)
    method = build_method(name, DIM, K, method_config(name, **settings))
    with torch.no_grad():  # projectors start so small that everything would look alike
        for key, parameter in method.named_parameters():
            if "layers" in key:
                parameter *= 15
    return Network(Tuned(), method).double()


def parameters(network: Network) -> Parameters:
    return {name: value for name, value in network.named_parameters() if not name.startswith("teacher.")}


def compare(network: Network, expected: Parameters, start: Parameters) -> None:
    found = {name: value.detach() for name, value in parameters(network).items()}
    torch.testing.assert_close(found, {name: expected[name].detach() for name in found}, rtol=1e-8, atol=1e-10)
    moved = [name for name, value in parameters(network).items() if not torch.allclose(value, start[name], atol=1e-6)]
    assert "tuned.block.weight" in moved
    assert len(moved) > 2


def start_of(network: Network) -> Parameters:
    return {name: value.detach().clone() for name, value in parameters(network).items()}


def mlp(p: Parameters, prefix: str, x: Tensor) -> Tensor:
    """Linear layers with GELU between them."""
    weights = sorted(name for name in p if name.startswith(prefix) and name.endswith("weight"))
    for i, name in enumerate(weights):
        x = x @ p[name].T + p[name.replace("weight", "bias")]
        x = gelu(x) if i < len(weights) - 1 else x
    return x


def contrast(z: Tensor, ids: Tensor, temperature: float) -> Tensor:
    """Mean over anchors i of the mean over their positives of -log softmax over all other rows, row by row."""
    z = z / z.norm(dim=1, keepdim=True)
    losses = []
    for i in range(len(z)):
        others = [j for j in range(len(z)) if j != i]
        positives = [j for j in others if ids[j] == ids[i]]
        if positives:
            total = (z[i] @ z[others].T / temperature).exp().sum()
            losses.append(-torch.stack([(z[i] @ z[j] / temperature).exp() / total for j in positives]).log().mean())
    return torch.stack(losses).mean() if losses else z.sum() * 0


def supervised(logits: Tensor, y: Tensor) -> Tensor:
    """Mean of -log p of labelled rows."""
    p = logits.exp() / logits.exp().sum(dim=1, keepdim=True)
    rows = (y >= 0).nonzero()[:, 0]
    return -p[rows, y[rows]].log().mean()


def softmax(x: Tensor) -> Tensor:
    return x.exp() / x.exp().sum(dim=-1, keepdim=True)


def representation(p: Parameters, x: Tensor, y: Tensor, tau: tuple[float, float] = (1.0, 0.07)) -> Tensor:
    """0.65 InfoNCE + 0.35 SupCon of features x (2 B, d)."""
    z, both = mlp(p, "method.projector.layers", x), torch.cat([y, y])
    infonce = contrast(z, torch.arange(len(y)).repeat(2), tau[0])
    return 0.65 * infonce + 0.35 * contrast(z[both >= 0], both[both >= 0], tau[1])


def mean_entropy(p: Tensor) -> Tensor:
    mean = p.mean(dim=0)
    return log(p.shape[1]) + (mean * mean.log()).sum()


def test_simgcd(tmp_path: Path) -> None:
    network = network_of(
        "simgcd", benchmark="cub", settings={"projector_hidden": 16, "projector_out": 8, "teacher_warmup_epochs": 2}
    )
    start = start_of(network)

    def loss(p: Parameters, views: Views, y: Tensor, epoch: int, _: int) -> Tensor:
        x = plain_features(p, torch.cat(views))
        logits = cosines(x, p["method.classifier.prototypes"])
        tau = [0.07, 0.04, 0.04][epoch]
        q, prediction = softmax(logits.detach() / tau), softmax(logits / 0.1)
        swapped = torch.cat([q[BATCH:], q[:BATCH]])
        distil = -(swapped * prediction.log()).sum(dim=1).mean()
        unsupervised = distil + 2 * mean_entropy(prediction)
        return representation(p, x, y) + 0.65 * unsupervised + 0.35 * supervised(logits / 0.1, torch.cat([y, y]))

    train(network, tmp_path)
    compare(network, plain_train(start, loss, rate=0.1, decay=5e-5, decay_vectors=False), start)


def test_gcd_with_the_wide_output(tmp_path: Path) -> None:
    network = network_of("gcd", settings={"projector_hidden": 16, "projector_out": 8, "projector_width": 64})
    start = start_of(network)

    def loss(p: Parameters, views: Views, y: Tensor, *_: int) -> Tensor:
        x, both = plain_features(p, torch.cat(views)), torch.cat([y, y])
        outputs = cosines(mlp(p, "method.projector.layers", x), p["method.projector.wide.rows"])  # (2 B, 64), formed
        infonce = contrast(outputs, torch.arange(BATCH).repeat(2), 1.0)
        return 0.65 * infonce + 0.35 * contrast(outputs[both >= 0], both[both >= 0], 0.07)

    train(network, tmp_path)
    compare(network, plain_train(start, loss, rate=0.1, decay=5e-5, decay_vectors=True), start)


@pytest.mark.parametrize("known_on", ["backbone", "head"])
def test_uno(tmp_path: Path, known_on: str) -> None:
    settings = {"head_hidden": 16, "head_out": 8, "n_heads": 2, "known_on": known_on}
    network = network_of("uno", settings=settings)
    start = start_of(network)
    n_over = N_KNOWN + 3 * (K - N_KNOWN)

    def head(p: Parameters, kind: str, h: int, x: Tensor, n: int) -> Tensor:
        own = cosines(mlp(p, f"method.{kind}.{h}.mlp.layers", x), p[f"method.{kind}.{h}.classifier.prototypes"])
        if known_on == "head":
            return own[:, :n]
        known = cosines(x, p["method.shared.prototypes"])[:, :N_KNOWN]
        return torch.cat([known, own[:, : n - N_KNOWN]], dim=1)

    def swapped(logits: Tensor, y: Tensor) -> Tensor:
        n, free = logits.shape[1], y < 0
        targets = []
        for view in logits.detach().split(BATCH):
            q = (view[free] / 0.05).exp()
            for _ in range(3):
                q = q / q.sum(dim=0) / n
                q = q / q.sum(dim=1, keepdim=True) / len(q)
            target = one_hot(y.clamp_min(0), n).double()
            target[free] = q * len(q)
            targets.append(target)
        log_p = softmax(logits / 0.1).log().split(BATCH)
        return -torch.stack([(targets[a] * log_p[1 - a]).sum(dim=1).mean() for a in (0, 1)]).mean()

    def loss(p: Parameters, views: Views, y: Tensor, *_: int) -> Tensor:
        x = plain_features(p, torch.cat(views))
        own = torch.stack([swapped(head(p, "heads", h, x, K), y) for h in (0, 1)]).mean()
        return (own + torch.stack([swapped(head(p, "over_heads", h, x, n_over), y) for h in (0, 1)]).mean()) / 2

    train(network, tmp_path)
    compare(network, plain_train(start, loss, rate=0.1, decay=1.5e-4, decay_vectors=True), start)


def test_orca(tmp_path: Path) -> None:
    network = network_of("orca")
    start = start_of(network)
    memory = {"uncertainty": 1.0, "sums": [], "generator": None}

    def loss(p: Parameters, views: Views, y: Tensor, epoch: int, step: int) -> Tensor:
        if step == 0:
            if memory["sums"]:
                memory["uncertainty"] = 1 - float(torch.cat(memory["sums"]).mean())
            memory.update(sums=[], generator=torch.Generator().manual_seed(epoch))
        x, both = plain_features(p, torch.cat(views)), torch.cat([y, y])
        cosine = cosines(x, p["method.classifier.prototypes"])
        prediction = softmax(10 * cosine)
        memory["sums"].append(prediction.detach()[both < 0].max(dim=1).values)
        raised = 10 * (cosine + min(memory["uncertainty"], 0.5) * one_hot(both.clamp_min(0), K))
        own = (y >= 0).nonzero()[:, 0]
        drawn = own[random_partners(y[own], memory["generator"])]
        pairs = []
        for a, b in permutations(range(2)):
            unit = x.detach()[a * BATCH : (a + 1) * BATCH]
            unit = unit / unit.norm(dim=1, keepdim=True)
            partner = (unit @ unit.T - 9 * torch.eye(BATCH)).argmax(dim=1)
            partner[own] = drawn
            together = (prediction[a * BATCH :][:BATCH] * prediction[b * BATCH :][:BATCH][partner]).sum(dim=1)
            pairs.append(-together.log().mean())
        return supervised(raised, both) + torch.stack(pairs).mean() + mean_entropy(prediction)

    train(network, tmp_path)
    expected = plain_train(start, loss, rate=0.01, decay=5e-4, decay_vectors=True)
    compare(network, expected, start)
    assert memory["uncertainty"] < 1
    assert network.method.uncertainty.item() == pytest.approx(memory["uncertainty"], rel=1e-6)


@pytest.mark.parametrize("pairs_over", ["unlabelled", "all"])
def test_rank_statistics(tmp_path: Path, pairs_over: str) -> None:
    network = network_of("rankstats", settings={"top_k": 2, "pairs_over": pairs_over, "ramp_up_epochs": 2})
    start = start_of(network)
    n_same = []

    def loss(p: Parameters, views: Views, y: Tensor, epoch: int, _: int) -> Tensor:
        x = plain_features(p, torch.cat(views)).clamp_min(0)
        logits = x @ p["method.classifier.prototypes"].T + p["method.classifier.biases"]
        prediction = softmax(logits).split(BATCH)
        part = (y < 0).nonzero()[:, 0] if pairs_over == "unlabelled" else torch.arange(BATCH)
        terms = []
        for a, b in permutations(range(2)):
            top = [set(row.topk(2).indices.tolist()) for row in x[a * BATCH :][:BATCH]]
            for i in part.tolist():
                for j in part.tolist():
                    both = prediction[a][i] @ prediction[b][j]
                    n_same.append(top[i] == top[j] and i != j)
                    terms.append(-((both if top[i] == top[j] else 1 - both) + 1e-7).log())
        consistency = (prediction[0] - prediction[1]).square().mean()
        weight = 5 * torch.exp(torch.tensor(-5 * (1 - min(epoch / 2, 1)) ** 2, dtype=torch.float64))
        return supervised(logits, torch.cat([y, y])) + torch.stack(terms).mean() + weight * consistency

    train(network, tmp_path)
    compare(network, plain_train(start, loss, rate=0.001, decay=1e-4, decay_vectors=True), start)
    assert any(n_same)


@pytest.mark.parametrize("ramp", [True, False])
def test_debiaspl(tmp_path: Path, ramp: bool) -> None:
    settings = {"projector_hidden": 16, "projector_out": 8, "teacher_ramp": ramp, "teacher_decay": 0.5}
    network = network_of("debiaspl", settings=settings | {"threshold": 0.6, "mean_momentum": 0.9})
    start = start_of(network)
    teacher = {name: value.clone() for name, value in start.items()}
    memory = {"q": network.method.mean_prediction.clone(), "steps": 0, "certain": []}

    def follow(p: Parameters) -> None:
        n, decay = memory["steps"], 0.5
        decay = min(decay, (1 + n) / (10 + n)) if ramp else decay
        memory["steps"] += 1
        for name, value in p.items():
            teacher[name] = decay * teacher[name] + (1 - decay) * value.detach()

    def loss(p: Parameters, views: Views, y: Tensor, *_: int) -> Tensor:
        x, both = plain_features(p, torch.cat(views)), torch.cat([y, y])
        z = 10 * cosines(x, p["method.classifier.prototypes"])
        told = 10 * cosines(plain_features(teacher, torch.cat(views)), teacher["method.classifier.prototypes"])
        before = memory["q"]
        after = memory["q"] = 0.9 * before + 0.1 * softmax(told[both < 0]).mean(dim=0)
        costs = []
        for a, b in permutations(range(2)):
            for i in (y < 0).nonzero()[:, 0].tolist():
                debiased = softmax(told[a * BATCH + i] - 0.4 * before.log())
                certain = bool(debiased.max() >= 0.6)
                memory["certain"].append(certain)
                cost = -softmax(z[b * BATCH + i] + 0.4 * after.log())[debiased.argmax()].log()
                costs.append(cost if certain else 0 * cost)
        return representation(p, x, y) + supervised(z, both) + 10 * torch.stack(costs).mean()

    train(network, tmp_path)
    expected = plain_train(start, loss, rate=0.001, decay=1e-4, decay_vectors=True, after_step=follow)
    compare(network, expected, start)
    assert 0 < sum(memory["certain"]) < len(memory["certain"])
    assert memory["steps"] == 2 * EPOCHS
    for name, value in teacher.items():
        torch.testing.assert_close(network.teacher.get_parameter(name), value, rtol=1e-8, atol=1e-10)
    torch.testing.assert_close(network.method.mean_prediction, memory["q"], rtol=1e-8, atol=1e-10)
