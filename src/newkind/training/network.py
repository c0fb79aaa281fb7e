"""The trained network: tuned blocks (none for ready features) and the heads of a method."""

from __future__ import annotations

import copy
from typing import cast

import torch
from torch import Tensor, nn

from newkind.backbone.tokens import Tokens
from newkind.backbone.vit import TunedBlocks
from newkind.methods.method import Method

__all__ = ["Encoder", "Network"]


class Encoder(nn.Module):
    """Tokens to features.

    Parameters
    ----------
    tuned : TunedBlocks or None
        Last blocks of the backbone; None for ready features.
    """

    def __init__(self, tuned: TunedBlocks | None) -> None:
        super().__init__()
        self.tuned = tuned

    def features(self, tokens: Tokens) -> Tensor:
        """Class features (M, d) after the final norm; ready features are returned unchanged."""
        return tokens.cls if self.tuned is None else self.tuned(tokens)


class Network(Encoder):
    """Tokens to features to logits, with a moving average of itself for methods that want a teacher.

    Parameters
    ----------
    tuned : TunedBlocks or None
        Last blocks of the backbone; None for ready features.
    method : Method
        Heads.
    with_teacher : bool, default=True
        Whether to keep the moving average, if the method wants one.
    """

    teacher_steps: Tensor

    def __init__(self, tuned: TunedBlocks | None, method: Method, *, with_teacher: bool = True) -> None:
        super().__init__(tuned)
        self.method = method
        self.teacher: Network | None = None
        if method.teacher_decay is not None and with_teacher:
            self.teacher = Network(copy.deepcopy(tuned), copy.deepcopy(method), with_teacher=False)
            self.teacher.requires_grad_(False)
            self.register_buffer("teacher_steps", torch.zeros((), dtype=torch.int64))

    def category_probabilities(self, features: Tensor) -> Tensor:
        """Probabilities (M, K) of features (M, d)."""
        p = (self.method.logits(features).float() / self.method.temperature).softmax(dim=-1)
        smoothing = self.method.smoothing
        return (1 - smoothing) * p + smoothing / p.shape[-1] if smoothing else p

    @torch.no_grad()
    def teacher_logits(self, tokens: Tokens) -> Tensor | None:
        """Logits (M, K) of the moving average; None without one."""
        return None if self.teacher is None else self.teacher.method.logits(self.teacher.features(tokens))

    @torch.no_grad()
    def update_teacher(self) -> None:
        """teacher <- decay * teacher + (1 - decay) * network, after a step.

        With the method's `teacher_ramp`, the decay rises to its value as (1 + n) / (10 + n) over the steps n.
        """
        if self.teacher is None:
            return
        n, decay = int(self.teacher_steps), cast(float, self.method.teacher_decay)
        decay = min(decay, (1 + n) / (10 + n)) if self.method.teacher_ramp else decay
        self.teacher_steps += 1
        for module in ("tuned", "method"):
            student = dict(getattr(self, module).named_parameters()) if getattr(self, module) is not None else {}
            for name, value in student.items():
                getattr(self.teacher, module).get_parameter(name).lerp_(value, 1 - decay)
