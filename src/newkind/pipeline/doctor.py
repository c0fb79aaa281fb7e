"""What a machine has for Newkind, each finding with a remedy where something is amiss."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass

from newkind import __version__
from newkind.backbone.cache_folders import list_caches
from newkind.backbone.weights import list_stored
from newkind.data.prefetch import n_cpus
from newkind.paths import cache_dir

__all__ = ["Finding", "examine"]


@dataclass(frozen=True)
class Finding:
    what: str
    found: str
    ok: bool = True


def examine() -> list[Finding]:
    """Everything, in the order in which a person would ask."""
    import torch

    findings = [
        Finding(
            "Newkind", f"{__version__} on Python {platform.python_version()}, {platform.system()} {platform.machine()}"
        )
    ]
    packages = ("torch", "torchvision", "timm", "numpy", "scikit-learn", "pillow")
    findings.append(Finding("Packages", ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)))
    devices = [f"{n_cpus()} CPU cores, {torch.get_num_threads()} threads"]
    if torch.cuda.is_available():
        devices += [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    if torch.backends.mps.is_available():
        devices.append("Apple GPU (mps)")
    findings.append(Finding("Devices", "; ".join(devices)))
    findings.append(_half_precision())
    findings.append(_disk())
    stored = list_stored()
    findings.append(
        Finding("Weights", ", ".join(item.name for item in stored) or "none yet: newkind weights BACKBONE fetches some")
    )
    caches = list_caches()
    bad = [cache.folder.name for cache in caches if not cache.readable]
    size = sum(cache.gigabytes for cache in caches)
    findings.append(
        Finding(
            "Token caches",
            f"{len(caches)}, {size:.1f} GB" + (f"; not readable: {', '.join(bad)}" if bad else ""),
            not bad,
        )
    )
    return findings


def _half_precision() -> Finding:
    """Tried in a process of its own: some virtual machines advertise instructions and then end whoever uses them."""
    code = "import torch; a = torch.ones(64, 64, dtype=torch.bfloat16); (a @ a).sum().item()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    if done.returncode == 0:
        return Finding("bf16 on the CPU", "works")
    remedy = "set ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 if you want --precision bf16; fp32, the default, is not concerned"
    return Finding("bf16 on the CPU", f"ends the process ({remedy})")


def _disk() -> Finding:
    root = cache_dir("tokens")
    place = next(p for p in (root, *root.parents) if p.exists())
    free = shutil.disk_usage(place).free / 1e9
    writable = os.access(place, os.W_OK)
    note = "" if writable else "; it cannot be written: set NEWKIND_CACHE"
    return Finding("Cache directory", f"{root.parent}, {free:.0f} GB free{note}", writable and free > 5)
