"""Everything that a training needs to go on, in one safetensors file that is replaced as a whole.

All randomness of an epoch is a function of (seed, epoch), so the number of finished epochs is also the position of the
sampler and of every generator.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from newkind.errors import RunError

__all__ = ["Checkpoint", "load_checkpoint", "restore", "save_checkpoint", "write_safely"]


@dataclass(frozen=True)
class Checkpoint:
    """What a checkpoint file holds."""

    finished_epochs: int
    fingerprint: str
    """Of the config and the data; a checkpoint of something else is not continued."""
    tensors: dict[str, Tensor]


def save_checkpoint(
    path: Path, network: nn.Module, optimizer: torch.optim.SGD, *, finished_epochs: int, fingerprint: str
) -> None:
    """Parameters and their momentum. The file is written beside and then put in place of the old one."""
    momentum = {id(p): state.get("momentum_buffer") for p, state in optimizer.state.items()}
    tensors = {f"network.{name}": value.detach().cpu() for name, value in network.state_dict().items()}
    for name, parameter in network.named_parameters():
        buffer = momentum.get(id(parameter))
        if buffer is not None:
            tensors[f"momentum.{name}"] = buffer.detach().cpu()
    about = {"finished_epochs": finished_epochs, "fingerprint": fingerprint}
    write_safely(path, {k: v.contiguous() for k, v in tensors.items()}, about)


def write_safely(path: Path, tensors: dict[str, Tensor], about: dict[str, Any]) -> None:
    """A safetensors file with `about` as JSON in its header; whole or not at all, also when the power fails."""
    partial = path.with_suffix(".partial")
    try:
        save_file(tensors, partial, metadata={"about": json.dumps(about)})
        with open(partial, "rb") as file:
            os.fsync(file.fileno())
        partial.replace(path)
    except (OSError, SafetensorError) as error:
        partial.unlink(missing_ok=True)
        raise RunError(
            f"{path} could not be written ({error}); the one before it is kept.",
            fix="Free some disk and run the same command again.",
        ) from None


def load_checkpoint(path: Path) -> Checkpoint | None:
    """None if there is none; a damaged one is an error, never a silent new start."""
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            about = json.loads((file.metadata() or {})["about"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
        return Checkpoint(int(about["finished_epochs"]), str(about["fingerprint"]), tensors)
    except (OSError, SafetensorError, KeyError, ValueError, TypeError) as error:
        raise RunError(f"{path} is damaged ({error}).", fix="Start anew with --overwrite.") from None


def restore(checkpoint: Checkpoint, network: nn.Module, optimizer: torch.optim.SGD) -> None:
    """Puts parameters and momentum back."""
    network.load_state_dict(
        {k.removeprefix("network."): v for k, v in checkpoint.tensors.items() if k.startswith("network.")}
    )
    for name, parameter in network.named_parameters():
        buffer = checkpoint.tensors.get(f"momentum.{name}")
        if buffer is not None:
            optimizer.state[parameter]["momentum_buffer"] = buffer.to(parameter.device).clone()
