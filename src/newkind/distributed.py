"""Training with several processes: gather tensors, average gradients, join and leave the process group.

Without a process group, the world has size 1 and every function means the same, so callers need no special case.
A loss on gathered rows is the global loss on every rank. `gather_with_gradient` sums its gradient over the ranks and
`average_gradients` divides by their number, which gives exactly the gradient of one process.
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
"""Time that processes wait for the one that builds the token cache. A process that dies is noticed at once, because its
connection is closed."""


@contextmanager
def clear_message() -> Iterator[None]:
    """Say plainly that another process of the job has ended, for the time in which the launcher may end this one.

    The launcher sends SIGTERM to all processes when one has ended, at any moment. In a job of several processes, SIGTERM
    prints the error `process-died` and exits with code 2. After an error it still does, because the launcher may be
    faster than the message of that error on its way to the terminal.
    """

    def ended(*_: object) -> None:
        # Exit at once, in any state: files are written atomically.
        error = _peer_died()
        os.write(2, f"Error: {error} [{error.code}]\n".encode())
        os._exit(2)

    before = signal.signal(signal.SIGTERM, ended) if world_size() > 1 else None
    yield
    if before is not None:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _needs_every_process() -> Iterator[None]:
    """Around a call that communicates. It fails only if another process has ended, whatever the backend's words are.

    Raises
    ------
    NewkindError
        With code `process-died`.
    """
    try:
        yield
    except RuntimeError as error:
        raise _peer_died() from error


def _peer_died() -> NewkindError:
    """Error for the failure of another process."""
    return NewkindError(
        "Another process of this job has failed or was stopped. The last checkpoint is kept.",
        fix="Run the same command again to resume from it.",
        code="process-died",
    )


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


def first_on_machine() -> bool:
    """Whether this is the process that prepares files for all processes of its machine.

    Returns
    -------
    bool
    """
    return not _has_group() or os.environ.get("LOCAL_RANK", "0") == "0"


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
    with _needs_every_process():
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
    with _needs_every_process():
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


def gather_uneven(x: Tensor) -> Tensor:
    """Concatenate tensors of different lengths, without gradient.

    Parameters
    ----------
    x : Tensor of shape (N_r, ...)
        The length may differ between ranks.

    Returns
    -------
    Tensor of shape (sum of N_r, ...)
        In the order of ranks.
    """
    if world_size() == 1:
        return x.detach()
    lengths = gather(torch.tensor([len(x)], device=x.device)).tolist()  # (W,)
    padding = x.new_zeros(max(lengths) - len(x), *x.shape[1:])
    padded = gather(torch.cat([x.detach(), padding])).view(len(lengths), max(lengths), *x.shape[1:])
    return torch.cat([part[:length] for part, length in zip(padded, lengths, strict=True)])


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
    with _needs_every_process():
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
        with _needs_every_process():
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
        with _needs_every_process():
            dist.all_reduce(total)
        return total.chunk(world_size())[rank()]
