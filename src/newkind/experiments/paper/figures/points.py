"""Features in the plane, before and after training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from newkind.experiments.paper.embedding import kept_points
from newkind.experiments.paper.figures.sheet import by_data, sheet
from newkind.experiments.paper.results import Finished

__all__ = ["draw_embedding"]


def draw_embedding(name: str, finished: Sequence[Finished], out: Path) -> list[Path]:
    """Two panels a data; known classes are dots, new ones triangles."""
    groups = {title: lines[0] for title, lines in by_data(finished).items() if kept_points(lines[0]) is not None}
    paths: list[Path] = []
    if not groups:
        return paths
    with sheet(paths, out / name, 2, len(groups), width=4.2, height=4.0) as drawn:
        from matplotlib import colormaps

        for i, (title, line) in enumerate(groups.items()):
            kept = kept_points(line) or {}
            classes = list(dict.fromkeys(kept["classes"]))
            is_old = dict(zip(kept["classes"], kept["is_old"], strict=True))
            for panel, moment in zip(drawn.panels[2 * i : 2 * i + 2], ("before", "after"), strict=True):
                for j, label in enumerate(classes):
                    points = [
                        point
                        for point, own in zip(kept[moment]["points"], kept["classes"], strict=True)
                        if own == label
                    ]
                    panel.scatter(
                        [x for x, _ in points],
                        [y for _, y in points],
                        s=11,
                        color=colormaps["tab10"](j % 10),
                        marker="o" if is_old[label] else "^",
                        linewidths=0,
                        alpha=0.85,
                        label=f"{label} ({'known' if is_old[label] else 'new'})",
                    )
                panel.set_title(f"{title}: {moment}")
                panel.set_xticks([])
                panel.set_yticks([])
                panel.grid(False)
        drawn.legend()
    return paths
