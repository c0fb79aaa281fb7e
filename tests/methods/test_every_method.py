"""What holds for each trained method: it learns, resumes to the bit, takes any batch, merges, and two processes are one."""

import os
import socket
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from newkind import distributed
from newkind.evaluation import accuracy
from newkind.methods.method import Batch, Method
from newkind.methods.registry import METHODS, build_method
from newkind.training.network import Network
from small_training import DIM, K, batch_of, blobs, features_of, small_method, state, train_small

NAMES = ["simgcd", "rankstats", "uno", "orca", "debiaspl"]
ALL_NEW, ALL_KNOWN, MIXED, LONELY = [-1] * 6, [0, 1, 1, 2, 2, 0], [0, -1, 2, -1, -1, 0], [1, -1, -1, -1, -1, -1]


@pytest.mark.parametrize("name", NAMES)
def test_it_learns(name: str, tmp_path: Path) -> None:
    network = Network(None, small_method(name))
    reports = train_small(tmp_path, network, 15)
    assert reports[-1].losses["total"] < reports[0].losses["total"]
    values, truth, labels = blobs()
    with torch.no_grad():
        p = network.category_probabilities(torch.from_numpy(values)).numpy()
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-5)
    free, known = labels < 0, truth < 3
    assert accuracy(truth[free], p.argmax(axis=1)[free], known[free]).all > 0.5  # chance is 0.2
    assert (p.argmax(axis=1)[known] == truth[known]).mean() > 0.9  # known classes keep their own numbers


@pytest.mark.parametrize("name", NAMES)
def test_a_resumed_training_is_the_same_to_the_bit(name: str, tmp_path: Path) -> None:
    whole = Network(None, small_method(name))
    train_small(tmp_path / "a", whole, 3)
    train_small(tmp_path / "b", Network(None, small_method(name)), 3, stop_after=1)
    resumed = Network(None, small_method(name, seed=9))  # what it starts from does not matter
    assert [report.epoch for report in train_small(tmp_path / "b", resumed, 3)] == [2, 3]
    assert state(resumed) == state(whole)
    assert {name for name, _ in whole.named_buffers()} <= state(whole).keys()  # nothing that it remembers is left out


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("labels", [ALL_NEW, ALL_KNOWN, MIXED, LONELY], ids=["new", "known", "mixed", "lonely"])
@pytest.mark.parametrize("n_views", [2, 3])
@pytest.mark.parametrize("n_categories", [3, 11])
def test_every_batch_has_a_finite_loss_and_gradients(
    name: str, labels: list[int], n_views: int, n_categories: int
) -> None:
    method = small_method(name, n_categories=n_categories)
    features = features_of(n_views * 6, dtype=torch.float32).requires_grad_()
    told = torch.rand(n_views * 6, n_categories)
    terms = method.loss_terms(features, batch_of(labels, n_views=n_views, teacher_logits=told))
    assert set(terms.parts) <= set(terms.weights)
    assert all(part.requires_grad and part.ndim == 0 for part in terms.parts.values())
    terms.total().backward()
    assert all(part.isfinite() for part in terms.parts.values())
    assert features.grad is not None
    assert features.grad.isfinite().all()
    assert features.grad.abs().sum() > 0
    assert all(p.grad is not None and p.grad.isfinite().all() for p in method.parameters())
    assert all(buffer.isfinite().all() for buffer in method.buffers())


@pytest.mark.parametrize("name", NAMES)
def test_mixed_precision_is_close(name: str) -> None:
    features = features_of(24, dtype=torch.float32)
    batch = batch_of([0, 1, 2, 0, 1, 2, -1, -1, -1, -1, -1, -1], teacher_logits=torch.rand(24, K))
    expected = small_method(name).loss_terms(features, batch).total()
    generator = torch.Generator().manual_seed(3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = small_method(name).loss_terms(features, replace(batch, generator=generator)).total()
    assert found.item() == pytest.approx(expected.item(), rel=0.05)


@pytest.mark.parametrize("name", NAMES)
def test_steps_on_one_batch_lower_its_loss(name: str) -> None:
    method = small_method(name)
    features = features_of(24, dtype=torch.float32)
    optimizer = torch.optim.SGD(method.parameters(), lr=0.05)
    losses = []
    for _ in range(15):
        batch = batch_of([0, 1, 2, 0, 1, 2, -1, -1, -1, -1, -1, -1], teacher_logits=method.logits(features).detach())
        total = method.loss_terms(features, batch).total()
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
        losses.append(total.item())
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("name", NAMES)
def test_merged_categories_can_be_saved_and_read_again(name: str) -> None:
    method = small_method(name)
    if name == "uno":
        method.head_losses.copy_(torch.tensor([3.0, 1.0, 2.0, 4.0]))
    features = features_of(40, dtype=torch.float32)
    before = method.logits(features)
    groups = [[0], [1], [2, 4], [5]]  # 3 goes
    method.merge_categories(groups, [10, 10, 30, 0, 10, 5])
    after = method.logits(features)
    assert method.n_categories == after.shape[1] == 4
    torch.testing.assert_close(after[:, [0, 1, 3]], before[:, [0, 1, 5]])
    both = (3 * before[:, 2] + before[:, 4]).detach().numpy()  # cosine with a sum of directions, but for its length
    assert np.corrcoef(both, after[:, 2].detach().numpy())[0, 1] == pytest.approx(1, abs=1e-5)
    again = build_method(name, DIM, 4, method.config)
    again.load_state_dict(method.state_dict())
    torch.testing.assert_close(again.logits(features), after)


def test_all_of_them_are_here() -> None:
    assert set(NAMES) == {name for name, entry in METHODS.items() if entry.method.spare_prototypes}


def steps(name: str, part: slice, gather) -> tuple[Method, list[torch.Tensor]]:
    """Three steps on parts of the same batches; the method and its losses."""
    method = small_method(name).double()
    optimizer = torch.optim.SGD(method.parameters(), lr=0.05)
    labels = torch.tensor([0, 1, 0, 0, -1, 2, -1, -1, -1, 1, -1, -1])
    generator, losses = torch.Generator().manual_seed(5), []
    method.begin_epoch(0)
    for step in range(3):
        views = features_of(24, seed=step).view(2, 12, DIM)[:, part]
        told = torch.rand(2, 12, K, dtype=torch.float64, generator=torch.Generator().manual_seed(step))[:, part]
        batch = Batch(
            labels=labels[part],
            n_views=2,
            epoch=0,
            n_epochs=5,
            gather=gather,
            teacher_logits=told.reshape(-1, K),
            generator=generator,
        )
        total = method.loss_terms(views.reshape(-1, DIM), batch).total()
        optimizer.zero_grad()
        total.backward()
        distributed.average_gradients(method.parameters())
        optimizer.step()
        losses.append(total.detach())
    return method, losses


def two(rank: int, port: int) -> None:
    """What each of the two processes does."""
    warnings.simplefilter("error")
    torch.set_num_threads(1)
    alone = {name: steps(name, slice(None), lambda x: x) for name in NAMES}
    variables = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    os.environ.update({key: str(value) for key, value in variables.items()})
    distributed.init_from_environment()
    try:
        mine = slice(6 * rank, 6 * rank + 6)
        for name in NAMES:
            method, losses = steps(name, mine, distributed.gather_with_gradient)
            expected, expected_losses = alone[name]
            torch.testing.assert_close(losses, expected_losses, atol=1e-6, rtol=1e-6)
            torch.testing.assert_close(
                dict(method.state_dict()),
                dict(expected.state_dict()),
                atol=1e-6,
                rtol=1e-5,
                msg=lambda m, n=name: n + m,
            )
        for name in NAMES:  # losses of each process's own: what it remembers is still the same in both
            method, _ = steps(name, mine, lambda x: x)
            for buffer in (*method.buffers(), *method.parameters()):
                first, second = distributed.gather(buffer[None])
                torch.testing.assert_close(first, second, rtol=0, atol=0)
        distributed.barrier()
    finally:
        distributed.shutdown()


def test_two_processes_with_half_a_batch_are_one() -> None:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = int(s.getsockname()[1])
    torch.multiprocessing.spawn(two, args=(port,), nprocs=2)
