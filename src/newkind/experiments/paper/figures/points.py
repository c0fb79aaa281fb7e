"""Features in the plane, before and after training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from newkind.experiments.paper.embedding import kept_points
from newkind.experiments.paper.figures.sheet import Axes, Layout, draw_by_data
from newkind.experiments.paper.results import Finished

__all__ = ()


def draw_embedding(name: str, finished: Sequence[Finished], out: Path) -> list[Path]:
    """Two panels per data; known classes are dots, new ones triangles."""
    measured = [line for line in finished if kept_points(line) is not None]

    def draw(panels: list[Axes], title: str, lines: list[Finished]) -> None:
        from matplotlib import colormaps

        kept = kept_points(lines[0]) or {}
        is_old = dict(zip(kept["classes"], kept["is_old"], strict=True))
        for panel, moment in zip(panels, ("before", "after"), strict=True):
            points = list(zip(kept[moment]["points"], kept["classes"], strict=True))
            for j, label in enumerate(dict.fromkeys(kept["classes"])):
                own = [point for point, name in points if name == label]
                panel.scatter(
                    *zip(*own, strict=True),
                    s=11,
                    color=colormaps["tab10"](j % 10),
                    marker="o" if is_old[label] else "^",
                    linewidths=0,
                    alpha=0.85,
                    label=f"{label} ({'known' if is_old[label] else 'new'})",
                )
            panel.set(title=f"{title}: {moment}", xticks=[], yticks=[])
            panel.grid(False)

    return draw_by_data(out / name, measured, draw, Layout(columns=2, width=4.2, height=4.0, ylabel=""))
