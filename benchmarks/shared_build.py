"""Building features on two cores: two processes of one thread each, under torchrun's rules, against one process of two threads.

Only the build is timed, from the plan to the opened cache; starting Python and loading the backbone are not.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image

BAR = 0.9
BACKBONE, SIZE = "vit_small_patch14_dinov2.lvd142m", 112


def make_images(folder: Path, n: int) -> Path:
    """Write n different photographs of 400 x 300 pixels, as JPEG files."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    for i in range(n):
        coarse = Image.fromarray(rng.integers(0, 255, (30, 40, 3), dtype=np.uint8))
        coarse.resize((400, 300)).save(folder / f"{i:05d}.jpg")
    return folder


def build(images: Path) -> None:
    """One process: compute its share, and print the seconds in the first one."""
    import torch

    from newkind import distributed
    from newkind.backbone.loader import load_backbone
    from newkind.backbone.sources import open_cache
    from newkind.config import BackboneConfig
    from newkind.data import read_folder

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    distributed.init_from_environment()
    config = BackboneConfig(name=BACKBONE, random_weights=True, image_size=SIZE, tuned_blocks=0, views=0, device="cpu")
    backbone, collection = load_backbone(config), read_folder(images)
    distributed.barrier()
    started = time.perf_counter()
    open_cache(collection, config, backbone, views=(0, 1, 2))
    if distributed.main_process():
        print(time.perf_counter() - started)
    distributed.shutdown()


def seconds(images: Path, cache: Path, n_processes: int) -> float:
    """Seconds of a build by so many processes, which share two threads."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = str(s.getsockname()[1])
    started = []
    for rank in map(str, range(n_processes)):
        variables = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": str(n_processes), "MASTER_ADDR": "127.0.0.1"}
        variables |= {"MASTER_PORT": port, "OMP_NUM_THREADS": str(2 // n_processes), "NEWKIND_CACHE": str(cache)}
        command = [sys.executable, __file__, "--child", str(images)]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | variables))
    printed = [process.communicate()[0] for process in started]
    if any(process.returncode for process in started):
        raise SystemExit("A build failed.")
    return float(printed[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="Use 96 images instead of 640.")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        build(arguments.child)
        return
    n = 96 if arguments.quick else 640
    with tempfile.TemporaryDirectory() as folder:
        images = make_images(Path(folder) / "images", n)
        found = {p: seconds(images, Path(folder) / f"cache-{p}", p) for p in (1, 2)}
    print(f"{'processes':>10}{'threads':>10}{'seconds':>10}{'images/s':>10}")
    for processes, time_taken in found.items():
        print(f"{processes:>10}{2 // processes:>10}{time_taken:>10.1f}{n / time_taken:>10.1f}")
    value = found[1] / found[2]
    line = {"name": "shared_build", "value": round(value, 3), "bar": BAR, "ok": value > BAR}
    print(json.dumps({**line, "unit": "times the speed of one process with two threads"}))


if __name__ == "__main__":
    main()
