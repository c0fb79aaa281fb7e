"""Checkpoints: everything that is needed to resume a training, in one safetensors file that is replaced atomically.

All randomness of an epoch is a function of seed and epoch, so the number of finished epochs is also the state of the
sampler and of every generator.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from newkind.atomic import write_bytes
from newkind.errors import RunError
from newkind.schema import parse_json

__all__ = ["Checkpoint", "load_checkpoint", "restore", "save_checkpoint", "save_tensors"]


class _About(TypedDict):
    """What the header of a checkpoint says."""

    finished_epochs: int
    fingerprint: str
    sha256: NotRequired[str]


@dataclass(frozen=True)
class Checkpoint:
    """Content of a checkpoint file.

    Parameters
    ----------
    finished_epochs : int
        Number of finished epochs.
    fingerprint : str
        Fingerprint of config and data; a checkpoint of another one is not resumed.
    tensors : dict of str to Tensor
        Parameters and buffers as `network.NAME`, momentum as `momentum.NAME`.
    """

    finished_epochs: int
    fingerprint: str
    tensors: dict[str, Tensor]


def save_checkpoint(
    path: Path, network: nn.Module, optimizer: torch.optim.SGD, *, finished_epochs: int, fingerprint: str
) -> None:
    """Write parameters, buffers and momentum.

    Parameters
    ----------
    path : Path
        File to create or replace.
    network : nn.Module
        Network.
    optimizer : torch.optim.SGD
        Its optimizer.
    finished_epochs : int
        Number of finished epochs.
    fingerprint : str
        Fingerprint of config and data.
    """
    momentum = {id(p): state.get("momentum_buffer") for p, state in optimizer.state.items()}
    tensors = {f"network.{name}": value.detach().cpu() for name, value in network.state_dict().items()}
    for name, parameter in network.named_parameters():
        buffer = momentum.get(id(parameter))
        if buffer is not None:
            tensors[f"momentum.{name}"] = buffer.detach().cpu()
    about = {"finished_epochs": finished_epochs, "fingerprint": fingerprint, "sha256": _digest(tensors)}
    save_tensors(path, tensors, about)


def _digest(tensors: dict[str, Tensor]) -> str:
    """SHA-256 of the bytes of tensors, in the order of their names."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(name.encode() + tensors[name].contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def save_tensors(path: Path, tensors: dict[str, Tensor], about: dict[str, Any]) -> None:
    """Write a safetensors file atomically, with `about` as JSON in its header.

    The library's own `save_file` is not used: it writes through a temporary file of its own, which stays behind if the
    process is killed and which only the owner may read.
    """
    whole = {name: value.contiguous() for name, value in tensors.items()}
    write_bytes(path, save(whole, metadata={"about": json.dumps(about)}))


def load_checkpoint(path: Path) -> Checkpoint | None:
    """Read a checkpoint; None if there is none.

    Raises
    ------
    RunError
        With the code `damaged-checkpoint`; a damaged checkpoint never leads to a silent restart.
    """
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            about = parse_json((file.metadata() or {})["about"], _About)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
        if about.get("sha256", "") not in ("", _digest(tensors)):  # checkpoints of earlier versions have none
            raise ValueError("its values are not those that were written")
        return Checkpoint(about["finished_epochs"], about["fingerprint"], tensors)
    except (OSError, SafetensorError, KeyError, ValueError, TypeError) as error:
        raise RunError(
            f"{path} is damaged ({error}).",
            fix="Start again with `overwrite`.",
            code="damaged-checkpoint",
            file=path,
        ) from None


def restore(checkpoint: Checkpoint, network: nn.Module, optimizer: torch.optim.SGD) -> None:
    """Load parameters, buffers and momentum into a network and its optimizer; RunError if they are of another one."""
    state = {k.removeprefix("network."): v for k, v in checkpoint.tensors.items() if k.startswith("network.")}
    try:
        network.load_state_dict(state)
    except RuntimeError as error:
        raise RunError(
            f"The checkpoint is of another network ({str(error).splitlines()[0]}).",
            fix="Start again with `overwrite`.",
            code="damaged-checkpoint",
        ) from None
    for name, parameter in network.named_parameters():
        buffer = checkpoint.tensors.get(f"momentum.{name}")
        if buffer is not None:
            optimizer.state[parameter]["momentum_buffer"] = buffer.to(parameter.device).clone()
