"""What is trained: the tuned blocks (none for ready features) and a method's heads."""

from __future__ import annotations

from torch import Tensor, nn

from newkind.backbone.split import TunedBlocks
from newkind.backbone.tokens import Tokens
from newkind.methods.method import Method

__all__ = ["Network"]


class Network(nn.Module):
    """Tokens -> features -> logits."""

    def __init__(self, tuned: TunedBlocks | None, method: Method) -> None:
        super().__init__()
        self.tuned = tuned
        self.method = method

    def features(self, tokens: Tokens) -> Tensor:
        """(M, d): the class feature after the final norm; ready features are what they are."""
        return tokens.cls if self.tuned is None else self.tuned(tokens)

    def probabilities(self, tokens: Tokens) -> Tensor:
        """(M, K)"""
        return (self.method.logits(self.features(tokens)).float() / self.method.temperature).softmax(dim=-1)
