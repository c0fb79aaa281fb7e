"""`doctor`: what this machine has for Newkind, with a remedy where something is wrong."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from newkind import __version__
from newkind.backbone.cache_folders import list_caches
from newkind.backbone.weights import list_stored
from newkind.data.prefetch import n_cpus
from newkind.data.wording import count
from newkind.paths import cache_dir

__all__ = ["Finding", "examine"]

NEEDED_GB = 2


@dataclass(frozen=True)
class Finding:
    """One line of the check.

    Parameters
    ----------
    what : str
        What was checked.
    found : str
        What was found.
    ok : bool, default=True
        Whether it is fine.
    """

    what: str
    found: str
    ok: bool = True


def examine() -> list[Finding]:
    """Check versions, devices, memory, disk, weights and caches.

    Returns
    -------
    list of Finding
    """
    import torch

    findings = [
        Finding(
            "Newkind", f"{__version__} on Python {platform.python_version()}, {platform.system()} {platform.machine()}"
        )
    ]
    packages = ("torch", "torchvision", "timm", "numpy", "scikit-learn", "pillow")
    findings.append(Finding("Packages", ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)))
    devices = [f"{count(n_cpus(), 'CPU core')}, {count(torch.get_num_threads(), 'thread')}"]
    if torch.cuda.is_available():
        devices += [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    if torch.backends.mps.is_available():
        devices.append("Apple GPU (mps)")
    findings.append(Finding("Devices", "; ".join(devices)))
    findings.append(_memory())
    findings.append(_half_precision())
    findings.append(_disk())
    stored = list_stored()
    findings.append(
        Finding(
            "Weights", ", ".join(item.name for item in stored) or "none yet; `newkind weights BACKBONE` downloads some"
        )
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
    """Tried in a process of its own: some virtual machines advertise instructions that end a process which uses them."""
    code = "import torch; a = torch.ones(64, 64, dtype=torch.bfloat16); (a @ a).sum().item()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, timeout=120)
    if done.returncode == 0:
        return Finding("bf16 on the CPU", "works")
    remedy = "set ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 to use bf16; fp32, the default, is not affected"
    return Finding("bf16 on the CPU", f"ends the process ({remedy})")


def _memory() -> Finding:
    """Total and available memory; a run needs about 2 GB."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9 if hasattr(os, "sysconf") else 0.0
    available = total
    with suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        available = int(next(line for line in lines if line.startswith("MemAvailable")).split()[1]) * 1024 / 1e9
    if not total:
        return Finding("Memory", "unknown on this system")
    note = "" if available >= NEEDED_GB else f"; a run needs about {NEEDED_GB} GB"
    return Finding("Memory", f"{total:.0f} GB, {available:.0f} GB available{note}", available >= NEEDED_GB)


def _disk() -> Finding:
    root = cache_dir("tokens")
    place = next(p for p in (root, *root.parents) if p.exists())
    free = shutil.disk_usage(place).free / 1e9
    writable = os.access(place, os.W_OK)
    note = "" if writable else "; it is not writable, set NEWKIND_CACHE"
    return Finding("Cache directory", f"{root.parent}, {free:.0f} GB free{note}", writable and free > 5)
