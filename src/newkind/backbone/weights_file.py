"""Reading weights files: safetensors, or PyTorch files without the code that they may contain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from newkind.errors import WeightsError

__all__ = ["read_weights"]


def read_weights(path: Path) -> dict[str, Tensor]:
    """Read a weights file. Code in a pickle file is never run.

    Parameters
    ----------
    path : Path
        A .safetensors file, or a .pth file with a state dict or a training checkpoint.

    Returns
    -------
    dict of str to Tensor

    Raises
    ------
    WeightsError
        With code `weights-missing`, `damaged` or `no-state-dict`.
    """
    if not path.is_file():
        raise WeightsError(f"The weights file {path} does not exist.", code="weights-missing", file=path)
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        content = torch.load(path, map_location="cpu", weights_only=True)
    except SafetensorError as error:
        raise WeightsError(
            f"{path} is damaged or not a safetensors file ({error}).",
            fix="Download it again.",
            code="damaged",
            file=path,
        ) from None
    except Exception as error:  # noqa: BLE001 - the unpickler raises whatever damaged bytes lead to
        reason = str(error).strip().splitlines()[0][:120] if str(error).strip() else type(error).__name__
        raise WeightsError(
            f"{path} is damaged or contains more than tensors ({reason}).",
            fix="Download it again, or convert it to safetensors.",
            code="damaged",
            file=path,
        ) from None
    return _unwrap(content, path)


def _unwrap(content: Any, path: Path) -> dict[str, Tensor]:
    """State dict in a training checkpoint, without the prefixes of wrappers."""
    for key in ("state_dict", "model", "teacher", "student"):
        if isinstance(content, dict) and isinstance(content.get(key), dict):
            content = content[key]
            break
    if not isinstance(content, dict) or not all(isinstance(value, Tensor) for value in content.values()):
        raise WeightsError(
            f"{path} does not contain a state dict (a dictionary of names and tensors).",
            code="no-state-dict",
            file=path,
        )
    for prefix in ("module.", "backbone."):
        if any(key.startswith(prefix) for key in content):
            content = {key.removeprefix(prefix): value for key, value in content.items() if key.startswith(prefix)}
    return dict(content)
