"""The objective's terms as pure functions of tensors, and the schedules of their temperature and learning rate."""

from newkind.losses.contrastive import contrastive_loss
from newkind.losses.distillation import self_distillation_loss
from newkind.losses.entropy import mean_entropy_penalty
from newkind.losses.schedules import cosine_learning_rate, teacher_temperature
from newkind.losses.supervised import supervised_loss

__all__ = [
    "contrastive_loss",
    "cosine_learning_rate",
    "mean_entropy_penalty",
    "self_distillation_loss",
    "supervised_loss",
    "teacher_temperature",
]
