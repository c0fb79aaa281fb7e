"""Several processes as one: gather tensors, average gradients, join and leave the process group.

Without a process group, the world has size 1 and every function means the same, so callers need no special case.
A loss on gathered rows is the global loss on every rank. `gather_with_gradient` sums its gradient over the ranks and
`average_gradients` divides by their number, which gives exactly the gradient of one process.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from itertools import chain
from typing import Any, ClassVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

from newkind.errors import NewkindError
from newkind.process_failure import needs_every_process

__all__ = [
    "average_gradients",
    "barrier",
    "broadcast",
    "broadcast_parameters",
    "collect",
    "gather",
    "gather_bytes",
    "gather_with_gradient",
    "init_from_environment",
    "joint_progress",
    "main_process",
    "rank",
    "shutdown",
    "world_size",
]

PATIENCE = timedelta(days=7)
"""Time that processes wait for the slowest one. A process that dies is noticed at once, because its connection is closed."""
COUNT_SECONDS = 0.5
"""Time between two messages of a process about its progress."""


def rank() -> int:
    """Number of this process.

    Returns
    -------
    int
        From 0; 0 without a process group.
    """
    return dist.get_rank() if _has_group() else 0


def world_size() -> int:
    """Number of processes.

    Returns
    -------
    int
        1 without a process group.
    """
    return dist.get_world_size() if _has_group() else 1


def main_process() -> bool:
    """Whether this is the process that writes files and prints.

    Returns
    -------
    bool
    """
    return rank() == 0


def broadcast(x: Tensor) -> Tensor:
    """Copy the tensor of rank 0 to every rank.

    Parameters
    ----------
    x : Tensor
        Same shape and dtype on every rank.

    Returns
    -------
    Tensor
        Without gradient.
    """
    if world_size() == 1:
        return x
    sent = x.detach().contiguous().clone()
    with needs_every_process():
        dist.broadcast(sent, src=0)
    return sent


def gather(x: Tensor) -> Tensor:
    """Concatenate the tensors of all W ranks, without gradient.

    Parameters
    ----------
    x : Tensor of shape (N, ...)
        Same shape on every rank.

    Returns
    -------
    Tensor of shape (W * N, ...)
        In the order of ranks.
    """
    x = x.detach()
    if world_size() == 1:
        return x
    x = x.contiguous()
    parts = [torch.empty_like(x) for _ in range(world_size())]
    with needs_every_process():
        dist.all_gather(parts, x)
    return torch.cat(parts)


def gather_with_gradient(x: Tensor) -> Tensor:
    """Concatenate the tensors of all W ranks; the gradient of this rank's rows is the sum over all ranks.

    The backward pass communicates too, so either every rank uses the result in its loss, or none.

    Parameters
    ----------
    x : Tensor of shape (N, ...)
        Same shape on every rank.

    Returns
    -------
    Tensor of shape (W * N, ...)
        In the order of ranks.
    """
    if world_size() == 1:
        return x
    return _Gather.apply(x)  # type: ignore[no-any-return]


def collect(x: Tensor, lengths: Sequence[int]) -> Iterator[Tensor]:
    """Send tensors to the main process, where one at a time is in memory.

    Parameters
    ----------
    x : Tensor of shape (N_r, ...)
        The length may differ between ranks.
    lengths : sequence of int
        N_r of every rank.

    Yields
    ------
    Tensor of shape (N_r, ...)
        In the main process, in the order of ranks; nothing in the others.
    """
    x = x.detach().contiguous()
    if not main_process():
        with needs_every_process():
            dist.send(x, dst=0)
        return
    yield x
    for sender, length in enumerate(lengths[1:], start=1):
        part = x.new_empty(length, *x.shape[1:])
        with needs_every_process():
            dist.recv(part, src=sender)
        yield part


def gather_bytes(content: bytes) -> list[bytes]:
    """Content of every process.

    Parameters
    ----------
    content : bytes
        Of any length.

    Returns
    -------
    list of bytes
        In the order of ranks.
    """
    if world_size() == 1:
        return [content]
    lengths = gather(torch.tensor([len(content)])).tolist()  # (W,)
    padded = torch.zeros(max(lengths), dtype=torch.uint8)
    padded[: len(content)] = torch.frombuffer(bytearray(content), dtype=torch.uint8) if content else padded[:0]
    rows = gather(padded).view(len(lengths), max(lengths))
    return [row[:length].numpy().tobytes() for row, length in zip(rows, lengths, strict=True)]


@contextmanager
def joint_progress(show: Callable[[int], None]) -> Iterator[Callable[[int], None]]:
    """Count what all processes finish, and leave when every process does.

    Parameters
    ----------
    show : callable
        Called in the main process with the number of items that were finished since the last call, by all processes.

    Yields
    ------
    callable
        Takes the number of items that this process has finished.
    """
    if world_size() == 1:
        yield show
        return
    count = _JointCount(show)
    yield count.add
    with needs_every_process():
        done = dist.all_reduce(torch.zeros(1), async_op=True)
        while not done.is_completed():
            count.exchange()
            time.sleep(COUNT_SECONDS / 5)
        done.wait()
    count.exchange()


class _JointCount:
    """A number in the store of the process group that every process adds to."""

    numbers: ClassVar[Iterator[int]] = itertools.count()
    """Every process counts the same things in the same order, and so uses the same name."""

    def __init__(self, show: Callable[[int], None]) -> None:
        self.name, self.show = f"newkind/count/{next(self.numbers)}", show
        self.store = dist.distributed_c10d._get_default_store()
        self.own = self.shown = 0
        self.last = time.monotonic()

    def add(self, n: int) -> None:
        """Count what this process has finished; not more often than the network needs to know."""
        self.own += n
        if time.monotonic() - self.last >= COUNT_SECONDS:
            self.exchange()

    def exchange(self) -> None:
        """Add to the joint count, and show it in the main process."""
        self.last = time.monotonic()
        with needs_every_process():
            total = self.store.add(self.name, self.own)
        self.own = 0
        if main_process() and total > self.shown:
            self.show(total - self.shown)
            self.shown = total


def average_gradients(parameters: Iterable[Tensor]) -> None:
    """Replace every gradient by its mean over the ranks; a missing gradient counts as zero.

    A parameter without a gradient on any rank keeps none, so the optimiser skips it as in one process.

    Parameters
    ----------
    parameters : iterable of Tensor
        Parameters in the same order on every rank. Those that need no gradient are ignored.
    """
    parameters = [p for p in parameters if p.requires_grad]
    if world_size() == 1 or not parameters:
        return
    # One buffer, one message: all gradients, then for each a 1 if it exists.
    grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
    is_there = grads[0].new_tensor([p.grad is not None for p in parameters])
    buffer = torch.cat([*(g.flatten() for g in grads), is_there])
    with needs_every_process():
        dist.all_reduce(buffer)
    *sums, is_anywhere = torch.split(buffer, [*(p.numel() for p in parameters), len(parameters)])
    for p, total, there in zip(parameters, sums, is_anywhere.tolist(), strict=True):
        if there:
            p.grad = (total / world_size()).view_as(p).to(p.dtype)


@torch.no_grad()
def broadcast_parameters(module: nn.Module) -> None:
    """Overwrite the parameters and buffers of every rank with those of rank 0.

    Parameters
    ----------
    module : torch.nn.Module
        Same structure on every rank.
    """
    if world_size() == 1:
        return
    for tensor in chain(module.parameters(), module.buffers()):
        tensor.copy_(broadcast(tensor))


def init_from_environment() -> None:
    """Join the process group that torchrun describes in RANK, WORLD_SIZE and LOCAL_RANK; do nothing without them.

    Raises
    ------
    NewkindError
        With code `too-few-gpus` (facts `local_rank` and `n_gpus`).
    """
    if not {"RANK", "WORLD_SIZE", "LOCAL_RANK"} <= os.environ.keys() or _has_group():
        return
    if not torch.cuda.is_available():
        dist.init_process_group("gloo", timeout=PATIENCE)
        return
    n_gpus, local_rank = torch.cuda.device_count(), int(os.environ["LOCAL_RANK"])
    if local_rank >= n_gpus:
        raise NewkindError(
            f"There is no GPU for process {local_rank} of this machine, which has {n_gpus} GPUs.",
            fix=f"Start one process per GPU: torchrun --nproc-per-node {n_gpus}.",
            code="too-few-gpus",
            local_rank=local_rank,
            n_gpus=n_gpus,
        )
    torch.cuda.set_device(local_rank)
    # One backend per device type, because ids and predictions are gathered on the CPU.
    dist.init_process_group("cpu:gloo,cuda:nccl", device_id=torch.device("cuda", local_rank), timeout=PATIENCE)


def shutdown() -> None:
    """Leave the process group, if there is one."""
    if _has_group():
        dist.destroy_process_group()


def barrier() -> None:
    """Wait until every process has reached this call."""
    if _has_group():
        with needs_every_process():
            dist.barrier()


def _has_group() -> bool:
    """Whether this process belongs to a process group."""
    return dist.is_available() and dist.is_initialized()


class _Gather(torch.autograd.Function):
    """`gather` with a backward pass."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:  # noqa: ARG004
        return gather(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:  # noqa: ARG004
        total = grad.clone(memory_format=torch.contiguous_format)  # (W * N, ...)
        with needs_every_process():
            dist.all_reduce(total)
        return total.chunk(world_size())[rank()]
