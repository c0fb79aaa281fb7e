"""Run all benchmarks of this folder and write the results to `results/NAME.json`, with date, commit and machine."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def machine() -> str:
    """Name of the processor, if the system provides it, and number of cores."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        model = platform.processor() or platform.machine()
    return f"{model}, {os.cpu_count()} cores"


def commit() -> str:
    """Short hash of the current commit."""
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False, cwd=HERE, timeout=60
    )
    return done.stdout.strip() or "unknown"


def run(program: Path, *, quick: bool) -> bool:
    """Run one benchmark and print its output; unless `quick`, write its result. Returns whether it met its bar."""
    print(f"\n=== {program.name}", flush=True)
    command = [sys.executable, str(program), *(["--quick"] if quick else [])]
    lines: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    if process.returncode or not lines:
        print(f"{program.name} failed with exit code {process.returncode}.")
        return False
    result = json.loads(lines[-1])
    if not quick:
        result |= {"date": datetime.date.today().isoformat(), "commit": commit(), "machine": machine()}
        (HERE / "results").mkdir(exist_ok=True)
        (HERE / "results" / f"{program.stem}.json").write_text(json.dumps(result, indent=2) + "\n")
        (HERE / "results" / f"{program.stem}.txt").write_text("".join(lines[:-1]))
    return bool(result["ok"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="benchmarks to run (default: all)")
    parser.add_argument("--quick", action="store_true", help="each in under a minute; results are not written")
    arguments = parser.parse_args()
    programs = [
        p for p in sorted(HERE.glob("*.py")) if p.name not in (Path(__file__).name, "measure.py", "child_process.py")
    ]
    if arguments.names:
        programs = [p for p in programs if p.stem in arguments.names]
    missed = [program.stem for program in programs if not run(program, quick=arguments.quick)]
    print(
        f"\n{len(programs) - len(missed)} of {len(programs)} benchmarks met their bar."
        + (f" Missed: {missed}" if missed else "")
    )
    raise SystemExit(bool(missed))


if __name__ == "__main__":
    main()
