"""Several processes as one: gather what belongs together, average gradients, start and end the group.

Without a process group the world has size 1 and every function still means the same, so callers never ask.
A loss on gathered rows is the global loss on every rank; `gather_with_gradient` sums its gradient over the
ranks and `average_gradients` divides by their number, which leaves exactly the gradient of one process.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import chain
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from newkind.errors import NewkindError

__all__ = [
    "average_gradients",
    "barrier",
    "broadcast",
    "broadcast_parameters",
    "clear_message",
    "first_on_machine",
    "gather",
    "gather_uneven",
    "gather_with_gradient",
    "init_from_environment",
    "main_process",
    "rank",
    "shutdown",
    "world_size",
]

PATIENCE = timedelta(days=7)
"""How long processes wait for one that builds the token cache; a dead one is noticed at once by its closed connection."""
DEATH = ("Connection closed", "Connection reset", "connection", "NCCL", "Socket", "Timed out", "timeout")
"""Words in the errors of the process group that mean a peer is gone."""


@contextmanager
def clear_message() -> Iterator[None]:
    """Turns what a process meets when another one of its job has died (a broken connection, or the launcher's SIGTERM)
    into a sentence."""

    def ended(*_: object) -> None:
        # Wherever this process is just now: everything on disk is written whole or not at all.
        os.write(2, f"Error: {_peer_died()}\n".encode())
        os._exit(2)

    before = signal.signal(signal.SIGTERM, ended) if world_size() > 1 else None
    try:
        yield
    except RuntimeError as error:
        if world_size() == 1 or not any(word in str(error) for word in DEATH):
            raise
        raise _peer_died() from None
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)


def _peer_died() -> NewkindError:
    return NewkindError(
        "Another process of this job has died or was stopped; what was finished up to the last checkpoint is kept.",
        fix="Run the same command again: it goes on from there.",
    )


def rank() -> int:
    """This process's number, from 0."""
    return dist.get_rank() if _has_group() else 0


def world_size() -> int:
    """The number of processes."""
    return dist.get_world_size() if _has_group() else 1


def main_process() -> bool:
    """Whether this process writes files and prints."""
    return rank() == 0


def first_on_machine() -> bool:
    """Whether this process prepares what the others of its machine will read from its disk."""
    return not _has_group() or os.environ.get("LOCAL_RANK", "0") == "0"


def broadcast(x: Tensor) -> Tensor:
    """Rank 0's tensor on every rank; shapes are the same everywhere."""
    if world_size() == 1:
        return x
    sent = x.detach().contiguous().clone()
    dist.broadcast(sent, src=0)
    return sent


def gather(x: Tensor) -> Tensor:
    """(N, ...) of each of W ranks -> (W * N, ...), in the order of ranks; no gradient. N is the same everywhere."""
    x = x.detach()
    if world_size() == 1:
        return x
    x = x.contiguous()
    parts = [torch.empty_like(x) for _ in range(world_size())]
    dist.all_gather(parts, x)
    return torch.cat(parts)


def gather_with_gradient(x: Tensor) -> Tensor:
    """`gather`, differentiable: this rank's rows receive the sum of the gradients of all ranks.

    The backward pass communicates too, so every rank must use the result in its loss, or none.
    """
    if world_size() == 1:
        return x
    return _Gather.apply(x)  # type: ignore[no-any-return]


def gather_uneven(x: Tensor) -> Tensor:
    """(N_r, ...) of rank r -> (sum of N_r, ...), in the order of ranks; no gradient."""
    lengths = gather(torch.tensor([len(x)], device=x.device)).tolist()  # (W,)
    padding = x.new_zeros(max(lengths) - len(x), *x.shape[1:])
    padded = gather(torch.cat([x.detach(), padding])).view(len(lengths), max(lengths), *x.shape[1:])
    return torch.cat([part[:length] for part, length in zip(padded, lengths, strict=True)])


def average_gradients(parameters: Iterable[Tensor]) -> None:
    """Replace every gradient by its mean over the ranks; a rank without a gradient counts as zero.

    A parameter that has none on any rank keeps none, so that the optimiser passes it over as in one process.
    """
    parameters = [p for p in parameters if p.requires_grad]
    if world_size() == 1 or not parameters:
        return
    # One buffer, one message: all gradients, then a 1 for each that is there.
    grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
    is_there = grads[0].new_tensor([p.grad is not None for p in parameters])
    buffer = torch.cat([*(g.flatten() for g in grads), is_there])
    dist.all_reduce(buffer)
    *sums, is_anywhere = torch.split(buffer, [*(p.numel() for p in parameters), len(parameters)])
    for p, total, there in zip(parameters, sums, is_anywhere.tolist(), strict=True):
        if there:
            p.grad = (total / world_size()).view_as(p).to(p.dtype)


@torch.no_grad()
def broadcast_parameters(module: nn.Module) -> None:
    """Overwrite the parameters and buffers of every rank with those of rank 0."""
    if world_size() == 1:
        return
    for tensor in chain(module.parameters(), module.buffers()):
        tensor.copy_(broadcast(tensor))


def init_from_environment() -> None:
    """Join the group that torchrun describes in RANK, WORLD_SIZE and LOCAL_RANK; without them, do nothing."""
    if not {"RANK", "WORLD_SIZE", "LOCAL_RANK"} <= os.environ.keys() or _has_group():
        return
    if not torch.cuda.is_available():
        dist.init_process_group("gloo", timeout=PATIENCE)
        return
    n_gpus, local_rank = torch.cuda.device_count(), int(os.environ["LOCAL_RANK"])
    if local_rank >= n_gpus:
        raise NewkindError(
            f"Process {local_rank} of this machine has no GPU: there are {n_gpus}.",
            fix=f"Start it with torchrun --nproc-per-node {n_gpus}.",
        )
    torch.cuda.set_device(local_rank)
    # Each device its backend: ids and predictions are gathered on the CPU.
    dist.init_process_group("cpu:gloo,cuda:nccl", device_id=torch.device("cuda", local_rank), timeout=PATIENCE)


def shutdown() -> None:
    """Leave the group, if there is one."""
    if _has_group():
        dist.destroy_process_group()


def barrier() -> None:
    """Wait until every process is here."""
    if _has_group():
        dist.barrier()


def _has_group() -> bool:
    return dist.is_available() and dist.is_initialized()


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:  # noqa: ARG004
        return gather(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:  # noqa: ARG004
        total = grad.clone(memory_format=torch.contiguous_format)  # (W * N, ...)
        dist.all_reduce(total)
        return total.chunk(world_size())[rank()]
