"""CPU time of imports in a new process, as multiples of `import torch`. The bar is for `from newkind import SimGCD`."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

BAR = 1.5
PROGRAMS = {
    "import torch": "import torch",
    "import newkind": "import newkind",
    "from newkind import SimGCD": "from newkind import SimGCD",
    "all that discover uses": "import newkind.api",
    "all that predict uses": "from newkind import load; load",
}


def cpu_seconds(program: str, repeats: int) -> float:
    """CPU time of the fastest of several processes that do this, the start of Python included."""
    code = f"{program}\nimport time; print(time.process_time())"
    command = [sys.executable, "-c", code]
    runs = (subprocess.run(command, capture_output=True, text=True, check=True, timeout=300) for _ in range(repeats))
    return min(float(done.stdout) for done in runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="Three processes each instead of ten.")
    repeats = 3 if parser.parse_args().quick else 10
    found: dict[str, float] = {}
    print(f"{'program':<30}{'CPU, s':>8}{'ratio':>8}")
    for name, program in PROGRAMS.items():
        found[name] = cpu_seconds(program, repeats)
        print(f"{name:<30}{found[name]:>8.2f}{found[name] / found['import torch']:>8.2f}")
    value = round(found["from newkind import SimGCD"] / found["import torch"], 2)
    print(json.dumps({"name": "cold_start", "value": value, "bar": BAR, "ok": value <= BAR, "unit": "x import torch"}))


if __name__ == "__main__":
    main()
