"""The moving average of a network: its values against a plain computation, no gradient of its own, and checkpoints keep it."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from newkind.backbone.tokens import Tokens
from newkind.config import TrainingConfig
from newkind.methods.debiaspl import DebiasPL, DebiasPLConfig
from newkind.methods.orca import ORCA, ORCAConfig
from newkind.training.checkpoint import load_checkpoint
from newkind.training.network import Network
from newkind.training.optimizer import build_sgd
from small_training import trainer_for

K, DIM, DECAY = 4, 8, 0.9


class Tuned(nn.Module):
    """Stands for the tuned blocks: something to train before the heads, and something frozen."""

    def __init__(self) -> None:
        super().__init__()
        self.block = nn.Linear(DIM, DIM)
        self.norm = nn.LayerNorm(DIM)
        self.norm.requires_grad_(False)

    def forward(self, tokens: Tokens) -> Tensor:
        return self.norm(self.block(tokens.cls))


def fresh_network(seed: int = 0, *, tuned: bool = True, decay: float | None = DECAY, ramp: bool = True) -> Network:
    torch.manual_seed(seed)
    config = DebiasPLConfig(
        projector_hidden=8,
        projector_out=4,
        teacher_decay=decay,
        teacher_ramp=ramp,
        mean_momentum=0.5,
        threshold=0.3,
        pseudo_label_weight=1.0,
    )
    return Network(Tuned() if tuned else None, DebiasPL(DIM, K, config))  # type: ignore[arg-type]


def tokens(n: int = 6, seed: int = 0) -> Tokens:
    x = torch.randn(n, DIM, generator=torch.Generator().manual_seed(seed))
    return Tokens(x.new_empty(n, 0, DIM), x)


def trained(network: Network, folder: Path, epochs: int) -> None:
    rng = np.random.default_rng(0)
    truth = np.arange(48) % K
    values = (2 * np.eye(K, DIM)[truth] + 0.3 * rng.normal(size=(48, DIM))).astype(np.float32)
    labels = np.where((truth < 2) & (np.arange(48) < 24), truth, -1)
    config = TrainingConfig(epochs=epochs, batch_size=16, learning_rate=0.1, checkpoint_seconds=0)
    trainer_for(network, values, labels, config, folder).train(lambda _: None)


def own(network: Network) -> dict[str, np.ndarray]:
    """The parameters of the network itself."""
    return {n: p.detach().numpy().copy() for n, p in network.named_parameters() if not n.startswith("teacher.")}


def teachers(network: Network) -> dict[str, np.ndarray]:
    return {n: p.detach().numpy().copy() for n, p in network.teacher.named_parameters()}


@pytest.mark.parametrize("tuned", [True, False])
@pytest.mark.parametrize("ramp", [True, False])
def test_values_over_steps(tuned: bool, ramp: bool) -> None:
    network = fresh_network(tuned=tuned, ramp=ramp)
    expected = own(network)
    assert expected.keys() == teachers(network).keys()
    for n in range(4):
        with torch.no_grad():
            for parameter in network.parameters():
                if parameter.requires_grad:
                    parameter += torch.randn_like(parameter)
        network.update_teacher()
        student, decay = own(network), min(DECAY, (1 + n) / (10 + n)) if ramp else DECAY
        expected = {name: decay * value + (1 - decay) * student[name] for name, value in expected.items()}
    for name, value in teachers(network).items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-5, atol=1e-6)


def test_it_starts_as_a_copy_and_says_what_it_knows() -> None:
    network = fresh_network()
    features = network.features(tokens())
    torch.testing.assert_close(network.teacher_logits(tokens()), network.method.logits(features).detach())
    with torch.no_grad():
        network.tuned.block.weight += 1
        network.method.classifier.prototypes.mul_(-1)
    told = network.teacher_logits(tokens())
    torch.testing.assert_close(told, fresh_network().method.logits(features).detach())  # it is a copy, not the same
    assert not told.requires_grad


def test_no_gradient_and_no_optimizer_reach_it(tmp_path: Path) -> None:
    network = fresh_network()
    optimizer = build_sgd([(network, 1.0)], learning_rate=0.1, momentum=0.9, weight_decay=5e-5)
    inside = {id(p) for group in optimizer.param_groups for p in group["params"]}
    assert not inside & {id(p) for p in network.teacher.parameters()}
    trained(network, tmp_path, 1)
    assert all(p.grad is None and not p.requires_grad for p in network.teacher.parameters())
    assert network.tuned.block.weight.grad is not None


def test_the_loop_moves_it_after_every_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network = fresh_network()
    expected, steps = own(network), 0
    move = network.update_teacher

    def watched() -> None:
        nonlocal expected, steps
        student, decay = own(network), min(DECAY, (1 + steps) / (10 + steps))
        expected = {name: decay * value + (1 - decay) * student[name] for name, value in expected.items()}
        steps += 1
        move()

    monkeypatch.setattr(network, "update_teacher", watched)
    trained(network, tmp_path, 2)
    assert steps == 6
    for name, value in teachers(network).items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-4, atol=1e-6)
    assert not np.allclose(teachers(network)["tuned.block.weight"], own(network)["tuned.block.weight"])


def test_it_decides_what_the_network_learns(tmp_path: Path) -> None:
    """With another teacher the same network learns something else: its logits do reach the method."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first, second = fresh_network(), fresh_network()
    with torch.no_grad():
        second.teacher.method.classifier.prototypes.copy_(second.method.classifier.prototypes.roll(1, 0))
    trained(first, tmp_path / "a", 1)
    trained(second, tmp_path / "b", 1)
    name = "method.classifier.prototypes"
    assert not np.allclose(own(first)[name], own(second)[name])


def test_the_checkpoint_keeps_it(tmp_path: Path) -> None:
    network = fresh_network()
    trained(network, tmp_path, 1)
    found = load_checkpoint(tmp_path / "c.safetensors")
    assert found is not None
    for name, value in network.teacher.state_dict().items():
        torch.testing.assert_close(found.tensors[f"network.teacher.{name}"], value, rtol=0, atol=0)
    again = fresh_network(seed=5)
    trained(again, tmp_path, 1)  # finished already: only restored
    assert all(np.array_equal(value, teachers(network)[name]) for name, value in teachers(again).items())


def test_who_has_none() -> None:
    for network in (fresh_network(decay=None), Network(None, ORCA(DIM, K, ORCAConfig()))):
        assert network.teacher is None
        assert network.teacher_logits(tokens()) is None
        network.update_teacher()
    alone = Network(None, fresh_network().method, with_teacher=False)  # as a finished model is read
    assert alone.teacher is None
    assert not [name for name in alone.state_dict() if name.startswith("teacher.")]
