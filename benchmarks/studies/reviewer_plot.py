"""Draw accuracy by name over the number of actions, from the curves that reviewer.py wrote.

python benchmarks/studies/reviewer_plot.py benchmarks/results/reviewer.json benchmarks/results/reviewer.png
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from matplotlib.figure import Figure

WAYS = {
    "review": ("review with refits", "C0"),
    "no-refit": ("review without refits", "C1"),
    "labels": ("one by one", "C3"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    content = json.loads(args.results.read_text())
    figure = Figure(figsize=(4 * len(content), 3.4), layout="constrained")
    panels = figure.subplots(1, len(content), squeeze=False)[0]
    for panel, (name, seeds) in zip(panels, content.items(), strict=True):
        for way, (label, colour) in WAYS.items():
            for i, found in enumerate(seed[way]["curve"] for seed in seeds.values() if way in seed):
                x, y = [point["actions"] for point in found], [100 * point["accuracy"] for point in found]
                panel.step(x, y, where="post", color=colour, linewidth=1.2, label=None if i else label)
        panel.axhline(95, color="0.6", linewidth=0.8, linestyle=":")
        panel.set(title=name.split("_")[0], xlabel="actions")
    panels[0].set_ylabel("accuracy by name (%)")
    panels[0].legend(loc="lower right", fontsize=8)
    figure.savefig(args.out, dpi=110)


if __name__ == "__main__":
    main()
