"""Choosing the precision of the frozen blocks."""

from __future__ import annotations

from dataclasses import replace

import torch

from newkind.config import BackboneConfig
from newkind.device import choose_device

__all__ = ["choose_precision", "has_bf16", "views_are_cheap"]


def choose_precision(config: BackboneConfig, *, as_published: bool = False) -> BackboneConfig:
    """Replace the precision auto by one that suits this machine.

    bf16 changes features by a cosine of 0.0001, and the accuracy by no more than chance does (benchmarks/results/effort.md). Accelerators
    keep fp32: there the trunk is rarely what takes time.

    Parameters
    ----------
    config : BackboneConfig
        Configuration of the backbone.
    as_published : bool, default=False
        Choose fp32, with which published methods were computed.

    Returns
    -------
    BackboneConfig
        With the precision that was asked for, otherwise bf16 or fp32.

    Examples
    --------
    >>> choose_precision(BackboneConfig(trunk_precision="int8")).trunk_precision
    'int8'
    >>> choose_precision(BackboneConfig(), as_published=True).trunk_precision
    'fp32'
    """
    if config.trunk_precision != "auto":
        return config
    is_cheaper = not as_published and _is_cpu(config.device) and has_bf16()
    return replace(config, trunk_precision="bf16" if is_cheaper else "fp32")


def _is_cpu(device: str) -> bool:
    """Whether a device is a CPU, by its name; an accelerator need not be on the machine that plans for it."""
    return device == "cpu" or (device == "auto" and choose_device(device).type == "cpu")


def has_bf16() -> bool:
    """Whether the processor is one on which bf16 was measured to be faster: with AVX-512 BF16 and without AMX.

    One machine that advertised AMX, which torch uses where it can, ended the process. So AMX has to be asked for.

    Returns
    -------
    bool
    """
    # Private, but there since torch 2.4; the public `get_capabilities` is newer.
    checks = [getattr(torch.cpu, f"_is_{name}_supported", None) for name in ("avx512_bf16", "amx_tile")]
    if None in checks:
        return False
    with_bf16, with_amx = (check() for check in checks if check is not None)
    return bool(with_bf16 and not with_amx)


def views_are_cheap(config: BackboneConfig) -> bool:
    """Whether more views hardly matter for the time of a discovery: on an accelerator, and with cheaper blocks than those of fp32.

    Parameters
    ----------
    config : BackboneConfig
        Configuration whose precision was chosen.

    Returns
    -------
    bool
    """
    return config.precision != "fp32" or not _is_cpu(config.device)
