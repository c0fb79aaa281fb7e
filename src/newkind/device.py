"""The device to compute on."""

from __future__ import annotations

import torch

from newkind.errors import ConfigError

__all__ = ["choose_device"]


def choose_device(name: str | torch.device) -> torch.device:
    """Device by name.

    Parameters
    ----------
    name : str or torch.device
        A torch device or its name, or "auto" for the first accelerator that works, otherwise the CPU.

    Returns
    -------
    torch.device

    Raises
    ------
    ConfigError
        With code `unknown-device` if the device cannot be used.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(
            f"The device '{name}' cannot be used ({reason}).",
            fix="Set `device` to cpu or auto.",
            code="unknown-device",
            device=str(name),
        ) from None
    return device
