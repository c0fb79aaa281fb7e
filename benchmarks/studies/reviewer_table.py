"""Tables of benchmarks/results/reviewer.md, from the curves that reviewer.py wrote.

python benchmarks/studies/reviewer_table.py benchmarks/results/reviewer.json
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

WAYS = {"review": "review with refits", "no-refit": "review without refits", "labels": "one by one"}
Results = list[dict[str, Any]]


def listed(values: Iterable[object]) -> str:
    return ", ".join(map(str, values))


def mean_of(values: Iterable[float]) -> float:
    found = list(values)
    return float(np.mean(found)) if found else float("nan")


def print_reached(name: str, way: str, results: Results) -> None:
    """Print what was needed until 95 % by name."""
    found = [result["reached"] for result in results]
    there = [point for point in found if point]
    columns = [
        listed(point[key] if point else "-" for point in found) for key in ("actions", "steps", "marks", "looks")
    ]
    start = 100 * np.mean([result["curve"][0]["accuracy"] for result in results])
    mean = mean_of(point["actions"] for point in there)
    rate = mean_of(point["settled"] / point["actions"] for point in there)
    precision = mean_of(100 * point["precision"] for point in there)
    print(
        f"| {name} | {WAYS[way]} | {start:.1f} | {columns[0]} | {mean:.1f} | {columns[1]} | {columns[2]} | {columns[3]} | {rate:.1f} | {precision:.1f} |"
    )


def print_end(name: str, way: str, results: Results) -> None:
    """Print the state at the end."""
    last = [result["curve"][-1] for result in results]
    accuracy = listed(f"{100 * point['accuracy']:.1f}" for point in last)
    precision = listed(f"{100 * point['precision']:.1f}" for point in last)
    rate = listed(f"{point['settled'] / point['actions']:.1f}" for point in last)
    actions, marks, looks = (listed(point[key] for point in last) for key in ("actions", "marks", "looks"))
    print(f"| {name} | {WAYS[way]} | {accuracy} | {actions} | {marks} | {looks} | {rate} | {precision} |")


def print_refits(name: str, way: str, results: Results) -> None:
    """Print what refits did to untouched images, and errors of calibration."""
    sums = [
        [sum(refit[key] for refit in result["refits"]) for key in ("untouched", "before", "after")]
        for result in results
    ]
    refits = [refit for result in results for refit in result["refits"]]
    lost = sum(refit["after"] < refit["before"] for refit in refits)
    before = f"{listed(each[1] for each in sums)} of {listed(each[0] for each in sums)}"
    gain = listed(f"{each[2] - each[1]:+d}" for each in sums)
    errors = []
    for key in ("error_before", "error_after", "error_kept"):
        weighted = [sum(refit["untouched"] * refit[key] for refit in result["refits"]) for result in results]
        errors.append(listed(f"{total / max(each[0], 1):.3f}" for total, each in zip(weighted, sums, strict=True)))
    print(
        f"| {name} | {WAYS[way]} | {before} | {listed(each[2] for each in sums)} | {gain} | {lost} of {len(refits)} |"
    )
    print(f"  calibration error | {' | '.join(errors)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    content = json.loads(parser.parse_args().results.read_text())
    for title, show in (("Until 95 %", print_reached), ("At the end", print_end), ("Refits", print_refits)):
        print(f"\n{title}\n")
        for name, seeds in content.items():
            for way in WAYS:
                results = [seeds[seed][way] for seed in sorted(seeds) if way in seeds[seed]]
                if results and (show is not print_refits or any(result["refits"] for result in results)):
                    show(name.split("_")[0], way, results)


if __name__ == "__main__":
    main()
