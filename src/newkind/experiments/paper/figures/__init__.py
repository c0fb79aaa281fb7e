"""The figures of every study. matplotlib is imported when the first one is drawn."""

from newkind.experiments.paper.figures.bars import draw_errors, draw_inference, draw_pilot, draw_unknown_k
from newkind.experiments.paper.figures.curves import draw_ablation, draw_epochs, draw_epsilon, draw_k
from newkind.experiments.paper.figures.distributions import draw_distribution
from newkind.experiments.paper.figures.overview import draw_methods, draw_tradeoff
from newkind.experiments.paper.figures.points import draw_embedding

__all__ = [
    "draw_ablation",
    "draw_distribution",
    "draw_embedding",
    "draw_epochs",
    "draw_epsilon",
    "draw_errors",
    "draw_inference",
    "draw_k",
    "draw_methods",
    "draw_pilot",
    "draw_tradeoff",
    "draw_unknown_k",
]
