"""Terms of the objectives as pure functions of tensors, and schedules of temperature, weights and learning rate."""

from newkind.losses.consistency import consistency_loss, ramp_up
from newkind.losses.contrastive import contrastive_loss
from newkind.losses.debias import pseudo_label_loss, pseudo_labels, running_mean
from newkind.losses.distillation import self_distillation_loss
from newkind.losses.entropy import mean_entropy_penalty
from newkind.losses.margins import confidence_sums, margin_loss
from newkind.losses.pairwise import pair_loss, partner_loss
from newkind.losses.partners import nearest_partners, random_partners
from newkind.losses.rank_statistics import same_dimensions, top_dimensions
from newkind.losses.schedules import cosine_learning_rate, teacher_temperature
from newkind.losses.sinkhorn import self_label_loss, sinkhorn
from newkind.losses.supervised import supervised_loss
from newkind.losses.swapped import swapped_prediction_loss

__all__ = [
    "confidence_sums",
    "consistency_loss",
    "contrastive_loss",
    "cosine_learning_rate",
    "margin_loss",
    "mean_entropy_penalty",
    "nearest_partners",
    "pair_loss",
    "partner_loss",
    "pseudo_label_loss",
    "pseudo_labels",
    "ramp_up",
    "random_partners",
    "running_mean",
    "same_dimensions",
    "self_distillation_loss",
    "self_label_loss",
    "sinkhorn",
    "supervised_loss",
    "swapped_prediction_loss",
    "teacher_temperature",
    "top_dimensions",
]
