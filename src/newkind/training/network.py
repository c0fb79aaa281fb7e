"""What is trained: the tuned blocks (none for ready features) and a method's heads."""

from __future__ import annotations

import copy
from typing import cast

import torch
from torch import Tensor, nn

from newkind.backbone.tokens import Tokens
from newkind.backbone.vit import TunedBlocks
from newkind.methods.method import Method

__all__ = ["Network"]


class Network(nn.Module):
    """Tokens -> features -> logits; beside it a moving average of itself, for methods that want a teacher."""

    teacher_steps: Tensor

    def __init__(self, tuned: TunedBlocks | None, method: Method, *, with_teacher: bool = True) -> None:
        super().__init__()
        self.tuned = tuned
        self.method = method
        self.teacher: Network | None = None
        if method.teacher_decay is not None and with_teacher:
            self.teacher = Network(copy.deepcopy(tuned), copy.deepcopy(method), with_teacher=False)
            self.teacher.requires_grad_(False)
            self.register_buffer("teacher_steps", torch.zeros((), dtype=torch.int64))

    def features(self, tokens: Tokens) -> Tensor:
        """(M, d): the class feature after the final norm; ready features are what they are."""
        return tokens.cls if self.tuned is None else self.tuned(tokens)

    def probabilities(self, tokens: Tokens) -> Tensor:
        """(M, K)"""
        return self.category_probabilities(self.features(tokens))

    def category_probabilities(self, features: Tensor) -> Tensor:
        """(M, d) -> (M, K)"""
        return (self.method.logits(features).float() / self.method.temperature).softmax(dim=-1)

    @torch.no_grad()
    def teacher_logits(self, tokens: Tokens) -> Tensor | None:
        """(M, K) of the moving average; None without one."""
        return None if self.teacher is None else self.teacher.method.logits(self.teacher.features(tokens))

    @torch.no_grad()
    def update_teacher(self) -> None:
        """teacher <- decay * teacher + (1 - decay) * network, after a step.

        The decay rises to its value as (1 + n) / (10 + n) over the steps n, so that a short training is not taught by its start.
        """
        if self.teacher is None:
            return
        n = int(self.teacher_steps)
        decay = min(cast(float, self.method.teacher_decay), (1 + n) / (10 + n))
        self.teacher_steps += 1
        for module in ("tuned", "method"):
            student = dict(getattr(self, module).named_parameters()) if getattr(self, module) is not None else {}
            for name, value in student.items():
                getattr(self.teacher, module).get_parameter(name).lerp_(value, 1 - decay)
