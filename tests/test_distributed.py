"""One process and two processes: the same losses, the same gradients."""

import os
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from error_codes import raises
from newkind import distributed
from newkind.errors import NewkindError
from newkind.losses import contrastive_loss, mean_entropy_penalty, self_distillation_loss, supervised_loss

VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
TIMEOUT = 240


class Images(NamedTuple):
    """Two views (2, B, 6) of B images, their numbers and labels (-1 for unlabelled)."""

    x: Tensor
    samples: Tensor
    labels: Tensor

    def half(self, part: int) -> "Images":
        return Images(self.x.chunk(2, dim=1)[part], self.samples.chunk(2)[part], self.labels.chunk(2)[part])


def images() -> Images:
    x = torch.randn(2, 8, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    return Images(x, torch.arange(8), torch.tensor([0, 1, 0, 2, -1, -1, -1, -1]))  # the second half has no label


def network() -> nn.ModuleDict:
    torch.manual_seed(2)
    parts = {"trunk": nn.Linear(6, 6), "projector": nn.Linear(6, 4), "classifier": nn.Linear(6, 5)}
    return nn.ModuleDict(parts).double()


def infonce(z: Tensor, logits: Tensor, samples: Tensor, labels: Tensor, views: Tensor) -> Tensor:
    return contrastive_loss(z, samples, temperature=0.5)


def other_views(z: Tensor, logits: Tensor, samples: Tensor, labels: Tensor, views: Tensor) -> Tensor:
    known = labels >= 0
    return contrastive_loss(
        z[known], labels[known], temperature=0.07, views=views[known], samples=samples[known]
    ) + contrastive_loss(z, samples, temperature=0.07, views=views)


def mean_entropy(z: Tensor, logits: Tensor, samples: Tensor, labels: Tensor, views: Tensor) -> Tensor:
    return mean_entropy_penalty((logits / 0.1).softmax(dim=1))


def everything(z: Tensor, logits: Tensor, samples: Tensor, labels: Tensor, views: Tensor) -> Tensor:
    known = labels >= 0
    order = views.argsort(stable=True)  # rows are ordered by rank; distillation needs them ordered by view
    return (
        infonce(z, logits, samples, labels, views)
        + contrastive_loss(z[known], labels[known], temperature=0.07)
        + mean_entropy(z, logits, samples, labels, views)
        + self_distillation_loss(logits[order], 2, student_temperature=0.1, teacher_temperature=0.05)
        + supervised_loss(logits[known], labels[known], temperature=0.1)
    )


OBJECTIVES: list[Callable[..., Tensor]] = [infonce, other_views, mean_entropy, everything]


def step(objective: Callable[..., Tensor], mine: Images) -> tuple[Tensor, dict[str, Tensor | None]]:
    """The global loss and all gradients, written once for any number of processes."""
    net = network()
    features = net["trunk"](mine.x.flatten(0, 1)).tanh()  # (2 * B, 6)
    z = distributed.gather_with_gradient(F.normalize(net["projector"](features), dim=1))
    logits = distributed.gather_with_gradient(net["classifier"](features))
    samples = distributed.gather(mine.samples.repeat(2))
    labels = distributed.gather_with_gradient(mine.labels.repeat(2))
    views = distributed.gather(torch.arange(2).repeat_interleave(len(mine.samples)))
    loss = objective(z, logits, samples, labels, views)
    # Every rank's graph reaches both gathers, whatever the objective uses.
    (loss + 0 * z.sum() + 0 * logits.sum()).backward()
    distributed.average_gradients(net.parameters())
    return loss.detach(), {name: p.grad for name, p in net.named_parameters()}


def check_losses(rank: int, alone: dict[str, tuple[Tensor, dict[str, Tensor | None]]]) -> None:
    for objective in OBJECTIVES:
        loss, grads = step(objective, images().half(rank))
        expected_loss, expected_grads = alone[objective.__name__]
        torch.testing.assert_close(loss, expected_loss, atol=1e-6, rtol=1e-6)
        torch.testing.assert_close(grads, expected_grads, atol=1e-6, rtol=1e-6)


def check_gathers(rank: int) -> None:
    x = torch.arange(6).view(3, 2) + 100 * rank
    both = torch.cat([torch.arange(6).view(3, 2), torch.arange(6).view(3, 2) + 100])
    torch.testing.assert_close(distributed.gather(x), both)
    torch.testing.assert_close(distributed.gather(x.T), torch.cat([both[:3].T, both[3:].T]))  # not contiguous
    torch.testing.assert_close(distributed.gather(x > 50), both > 50)

    weights = torch.arange(1.0 + 3 * rank, 4.0 + 3 * rank, requires_grad=True)
    gathered = distributed.gather_with_gradient(weights)
    torch.testing.assert_close(gathered, torch.arange(1.0, 7.0))
    (gathered * torch.arange(6.0) * (rank + 1)).sum().backward()  # ranks contribute 1 and 2 times the same
    torch.testing.assert_close(weights.grad, 3 * torch.arange(6.0)[3 * rank :][:3])
    assert not distributed.gather(weights).requires_grad

    for lengths in ((2, 5), (0, 3), (4, 0), (0, 0), (1, 1)):
        whole = torch.arange(2.0 * sum(lengths)).view(-1, 2)
        parts = (whole[: lengths[0]], whole[lengths[0] :])
        found = list(distributed.collect(parts[rank], lengths))
        assert len(found) == (0 if rank else 2)
        for part, expected in zip(found, parts, strict=False):
            torch.testing.assert_close(part, expected)
        sent = tuple(bytes(range(length)) for length in lengths)
        assert tuple(distributed.gather_bytes(sent[rank])) == sent

    counted: list[int] = []
    with distributed.joint_progress(counted.append) as count:
        for _ in range(3 + 4 * rank):
            count(2)
    assert sum(counted) == (0 if rank else 2 * 3 + 2 * 7)


def check_parameters(rank: int) -> None:
    a, b, c, frozen = (torch.zeros(2, 3, requires_grad=True) for _ in range(4))
    frozen.requires_grad_(False)
    a.grad = torch.full((2, 3), 1.0 + rank)
    if rank == 1:
        b.grad = torch.full((2, 3), 4.0)
    distributed.average_gradients([a, b, c, frozen])
    torch.testing.assert_close(a.grad, torch.full((2, 3), 1.5))
    torch.testing.assert_close(b.grad, torch.full((2, 3), 2.0))  # nothing on rank 0 counts as zero
    assert c.grad is None
    assert frozen.grad is None
    distributed.average_gradients([frozen])

    torch.manual_seed(rank)
    net = nn.Sequential(nn.Conv2d(2, 3, 2).to(memory_format=torch.channels_last), nn.BatchNorm2d(3))
    net[1].num_batches_tracked += 7 * rank  # type: ignore[operator]
    torch.manual_seed(0)
    first = nn.Sequential(nn.Conv2d(2, 3, 2), nn.BatchNorm2d(3))
    distributed.broadcast_parameters(net)
    torch.testing.assert_close(dict(net.state_dict()), dict(first.state_dict()), check_stride=False)


def two(rank: int, port: int) -> None:
    """Checks that each of the two processes runs."""
    warnings.simplefilter("error")
    torch.set_num_threads(1)
    alone = {objective.__name__: step(objective, images()) for objective in OBJECTIVES}
    os.environ.update(zip(VARIABLES, (str(rank), "2", str(rank), "127.0.0.1", str(port)), strict=True))
    distributed.init_from_environment()
    try:
        distributed.init_from_environment()  # a second call changes nothing
        assert (distributed.rank(), distributed.world_size()) == (rank, 2)
        assert distributed.main_process() == (rank == 0)
        check_gathers(rank)
        check_parameters(rank)
        check_losses(rank, alone)
        distributed.barrier()
    finally:
        distributed.shutdown()
    assert distributed.world_size() == 1


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def test_two_processes_are_one() -> None:
    processes = torch.multiprocessing.spawn(two, args=(free_port(),), nprocs=2, join=False)
    deadline = time.monotonic() + TIMEOUT
    while not processes.join(timeout=1):
        if time.monotonic() > deadline:
            for process in processes.processes:
                process.kill()
            pytest.fail(f"the processes did not finish within {TIMEOUT} s")


@pytest.fixture
def no_torchrun(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    yield
    distributed.shutdown()


@pytest.mark.usefixtures("no_torchrun")
def test_without_torchrun_the_world_is_one_process() -> None:
    distributed.init_from_environment()
    assert not torch.distributed.is_initialized()
    assert (distributed.rank(), distributed.world_size(), distributed.main_process()) == (0, 1, True)
    distributed.barrier()
    distributed.shutdown()


def test_one_process_gathers_itself() -> None:
    x = torch.ones(3, 2, requires_grad=True)
    assert distributed.gather_with_gradient(x) is x
    (collected,) = distributed.collect(x, [3])
    for found in (distributed.gather(x), collected):
        assert not found.requires_grad
        torch.testing.assert_close(found, x.detach())
    assert distributed.gather_bytes(b"own") == [b"own"]


def test_one_process_keeps_its_gradients_and_parameters() -> None:
    net = nn.Linear(2, 2)
    before = net.weight.detach().clone()
    net.weight.grad = grad = torch.ones(2, 2)
    distributed.average_gradients(net.parameters())
    distributed.broadcast_parameters(net)
    assert net.weight.grad is grad
    assert net.bias.grad is None
    torch.testing.assert_close(net.weight.detach(), before)


@pytest.mark.usefixtures("no_torchrun")
def test_a_torchrun_of_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in zip(VARIABLES, ("0", "1", "0", "127.0.0.1", str(free_port())), strict=True):
        monkeypatch.setenv(name, value)
    distributed.init_from_environment()
    assert torch.distributed.is_initialized()
    assert (distributed.rank(), distributed.world_size()) == (0, 1)
    distributed.barrier()
    assert distributed.gather_bytes(b"own") == [b"own"]


@pytest.mark.usefixtures("no_torchrun")
def test_more_processes_than_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in zip(VARIABLES, ("2", "3", "2", "127.0.0.1", "1"), strict=True):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with raises(NewkindError, "too-few-gpus") as caught:
        distributed.init_from_environment()
    assert caught.value.facts == {"local_rank": 2, "n_gpus": 2}


FIRST_OF_TWO = """
import os, signal, sys
from newkind import distributed
from newkind.errors import NewkindError
from newkind.process_failure import clear_message
distributed.init_from_environment()
if distributed.rank() == 1:
    os._exit(0)
with clear_message():
    if "sigterm-first" in sys.argv:
        os.kill(os.getpid(), signal.SIGTERM)
    try:
        while True:
            distributed.barrier()
    except NewkindError as error:
        assert error.code == "process-died"
        if "sigterm-later" not in sys.argv:
            raise SystemExit(7)
        raise
    finally:
        if "sigterm-later" in sys.argv:
            os.kill(os.getpid(), signal.SIGTERM)
"""


@pytest.mark.parametrize(("moment", "code"), [("sigterm-first", 2), ("sigterm-later", 2), ("no-sigterm", 7)])
def test_the_death_of_another_process_is_said(moment: str, code: int) -> None:
    """The launcher sends SIGTERM before the connection fails, or while the error is on its way to the terminal."""
    command = [sys.executable, "-c", FIRST_OF_TWO, moment]
    port = str(free_port())
    variables = [
        dict(zip(VARIABLES, (rank, "2", rank, "127.0.0.1", port), strict=True)) | {"OMP_NUM_THREADS": "1"}
        for rank in "01"
    ]
    second = subprocess.Popen(command, env=os.environ | variables[1])
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=TIMEOUT, env=os.environ | variables[0]
        )
    finally:
        second.kill()
        second.wait(timeout=TIMEOUT)
    assert done.returncode == code, done.stderr
    assert ("[process-died]" in done.stderr) == (code == 2)
