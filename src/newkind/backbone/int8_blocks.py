"""Transformer blocks with matrix products in int8, computed by onnxruntime.

The graph is written from the weights of timm's blocks: weights are int8 with one scale per output, and onnxruntime quantises what
enters a matrix product to uint8 with one scale per view (dynamic quantisation). Norms, softmax, GELU and sums stay in fp32.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from newkind.backbone.plain_block import why_not_plain
from newkind.errors import BackboneError, ConfigError

__all__ = ["Int8Blocks", "quantise"]

OPSET, IR_VERSION = 18, 9
LARGEST = 127
TINY = 1e-12


def quantise(weight: NDArray[np.float64]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Quantise a matrix to int8 with one scale per column.

    Parameters
    ----------
    weight : ndarray of shape (n_inputs, n_outputs)
        Matrix that is multiplied from the right.

    Returns
    -------
    quantised : ndarray of int8, shape (n_inputs, n_outputs)
        Between -127 and 127.
    scales : ndarray of float32, shape (n_outputs,)
        `quantised * scales` is close to `weight`: the error is at most half a scale.
    """
    scales = np.maximum(np.abs(weight).max(axis=0) / LARGEST, TINY).astype(np.float32)
    return np.rint(weight / scales).clip(-LARGEST, LARGEST).astype(np.int8), scales


class Int8Blocks:
    """Blocks in int8, as a function of tokens. It is not a module: nothing in it can be trained or moved.

    Views are computed one at a time, in as many threads as torch uses. The scale of a view therefore depends on that view
    only: the result does not depend on which other views are in the batch.

    Parameters
    ----------
    blocks : sequence of torch.nn.Module
        Transformer blocks of timm, in order. Their weights are copied.
    rope : Tensor, optional
        Rotary position embedding of the patches, with which int8 is not possible.

    Raises
    ------
    BackboneError
        With code `unsupported-precision` (fact `reason`) if a block is not that of a plain ViT.
    ConfigError
        With code `missing-package` if onnxruntime is not installed.
    """

    def __init__(self, blocks: Sequence[nn.Module], *, rope: Tensor | None = None) -> None:
        for block in blocks:
            if reason := why_not_plain(block, rope):
                raise BackboneError(
                    f"This backbone cannot be computed in int8: {reason}.",
                    fix="Set `trunk_precision` to fp32 or bf16.",
                    code="unsupported-precision",
                    reason=reason,
                )
        try:
            import onnxruntime  # here, because it is an extra
        except ImportError:
            raise ConfigError(
                "int8 needs onnxruntime, which is not installed.",
                fix="pip install 'newkind[onnx]'",
                code="missing-package",
            ) from None
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(_graph(blocks), options, providers=["CPUExecutionProvider"])

    def __call__(self, x: Tensor) -> Tensor:
        """Compute all blocks.

        Parameters
        ----------
        x : Tensor of shape (B, N, d)
            Tokens before the first block, on the CPU.

        Returns
        -------
        Tensor of shape (B, N, d)
            Tokens after the last block.
        """
        views = x.detach().float().contiguous().numpy()
        with ThreadPoolExecutor(max(min(torch.get_num_threads(), len(views)), 1)) as pool:
            parts = list(pool.map(lambda i: self._session.run(None, {"x": views[i : i + 1]})[0], range(len(views))))
        return torch.from_numpy(np.concatenate(parts)) if parts else x


class _Graph:
    """Nodes and weights of an ONNX graph that is being written."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.weights: list[Any] = []

    def weight(self, name: str, values: NDArray[Any]) -> str:
        """Add a weight."""
        from onnx import numpy_helper

        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def node(self, operator: str, inputs: Sequence[str], outputs: str | Sequence[str], **attributes: Any) -> str:
        """Add a node; returns its first output. Operators of onnxruntime are given with their domain."""
        from onnx import helper

        names = [outputs] if isinstance(outputs, str) else list(outputs)
        domain, _, kind = operator.rpartition("/")
        self.nodes.append(helper.make_node(kind, list(inputs), names, domain=domain, **attributes))
        return names[0]

    def norm(self, name: str, x: str, norm: Any) -> str:
        """Add a LayerNorm."""
        gamma, beta = self.weight(f"{name}.weight", _array(norm.weight)), self.weight(f"{name}.bias", _array(norm.bias))
        return self.node("LayerNormalization", [x, gamma, beta], name, epsilon=norm.eps, axis=-1)

    def linear(self, name: str, x: str, layer: Any, scale: Any = None) -> str:
        """Add a linear layer in int8, its output times a LayerScale."""
        weight = layer.weight.detach().double().cpu().numpy().T  # (n_inputs, n_outputs)
        bias = np.zeros(weight.shape[1]) if layer.bias is None else layer.bias.detach().double().cpu().numpy()
        if (gamma := getattr(scale, "gamma", None)) is not None:
            factor = gamma.detach().double().cpu().numpy()
            weight, bias = weight * factor, bias * factor
        quantised, scales = quantise(weight)
        inputs = [self.weight(f"{name}.weight", quantised), self.weight(f"{name}.scale", scales), ""]
        inputs.append(self.weight(f"{name}.bias", bias.astype(np.float32)))
        return self.node("com.microsoft/DynamicQuantizeMatMul", [x, *inputs], name)

    def block(self, name: str, x: str, block: Any) -> str:
        """Add a transformer block."""
        heads = {"num_heads": block.attn.num_heads, "scale": float(block.attn.scale)}
        qkv = self.linear(f"{name}.qkv", self.norm(f"{name}.norm1", x, block.norm1), block.attn.qkv)
        parts = [f"{name}.q", f"{name}.k", f"{name}.v"]
        self.node("Split", [qkv], parts, axis=-1, num_outputs=3)
        context = self.node("com.microsoft/MultiHeadAttention", parts, f"{name}.context", **heads)
        attended = self.linear(f"{name}.proj", context, block.attn.proj, getattr(block, "ls1", None))
        x = self.node("Add", [x, attended], f"{name}.attended")
        hidden = self.linear(f"{name}.fc1", self.norm(f"{name}.norm2", x, block.norm2), block.mlp.fc1)
        hidden = self.node("com.microsoft/Gelu", [hidden], f"{name}.gelu")
        out = self.linear(f"{name}.fc2", hidden, block.mlp.fc2, getattr(block, "ls2", None))
        return self.node("Add", [x, out], f"{name}.out")


def _graph(blocks: Sequence[Any]) -> bytes:
    """Serialised ONNX model of all blocks, from `x` (B, N, d) to tokens of the same shape."""
    from onnx import TensorProto, helper

    graph, x = _Graph(), "x"
    for i, block in enumerate(blocks):
        x = graph.block(f"block{i}", x, block)
    shape = ["views", "tokens", blocks[0].norm1.normalized_shape[0]]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("x", x)]
    made = helper.make_graph(graph.nodes, "blocks", ends[:1], ends[1:], graph.weights)
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", 1)]
    serialised: bytes = helper.make_model(made, opset_imports=opsets, ir_version=IR_VERSION).SerializeToString()
    return serialised


def _array(values: Tensor) -> NDArray[np.float32]:
    """Weights as a NumPy array."""
    array: NDArray[np.float32] = values.detach().float().cpu().numpy()
    return array
