"""Figures of all studies: (file name, finished lines, folder) -> written files. matplotlib is imported when one is drawn."""

from newkind.experiments.paper.figures.bars import draw_errors, draw_inference, draw_pilot, draw_unknown_k
from newkind.experiments.paper.figures.curves import draw_ablation, draw_epochs, draw_epsilon, draw_k
from newkind.experiments.paper.figures.distributions import draw_distribution
from newkind.experiments.paper.figures.overview import draw_methods, draw_tradeoff
from newkind.experiments.paper.figures.points import draw_embedding

__all__ = ["FIGURES"]

FIGURES = {
    "methods": draw_methods,
    "ablation": draw_ablation,
    "pilot": draw_pilot,
    "epsilon": draw_epsilon,
    "k": draw_k,
    "unknown-k": draw_unknown_k,
    "recipes": draw_unknown_k,
    "errors": draw_errors,
    "distribution": draw_distribution,
    "epochs": draw_epochs,
    "logit-adjust": draw_tradeoff,
    "inference": draw_inference,
    "tsne": draw_embedding,
}
"""Drawing function by name of the study."""
