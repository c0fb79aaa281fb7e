"""Reads the tensors out of an ONNX file: its wire format is simple, and nothing in the file is run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from newkind.errors import WeightsError

__all__ = ["OnnxNode", "OnnxTensors", "read_onnx"]

# Field numbers of onnx.proto.
MODEL_GRAPH = 7
GRAPH_NODE, GRAPH_INITIALIZER = 1, 5
NODE_INPUT, NODE_NAME, NODE_OP = 1, 3, 4
TENSOR_DIMS, TENSOR_TYPE, TENSOR_NAME, TENSOR_RAW = 1, 2, 8, 9
FLOAT = 1
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


@dataclass
class OnnxNode:
    name: str = ""
    op: str = ""
    inputs: list[str] = field(default_factory=list)


@dataclass
class OnnxTensors:
    """The graph's nodes, and its fp32 initialisers by name."""

    nodes: list[OnnxNode] = field(default_factory=list)
    tensors: dict[str, NDArray[np.float32]] = field(default_factory=dict)


def read_onnx(path: Path) -> OnnxTensors:
    """Raises WeightsError for a file that is not ONNX, or was cut short."""
    content = memoryview(path.read_bytes())
    found = OnnxTensors()
    try:
        for number, graph in _fields(content):
            if number != MODEL_GRAPH or isinstance(graph, int):
                continue
            for kind, message in _fields(graph):
                if kind == GRAPH_NODE and not isinstance(message, int):
                    found.nodes.append(_node(message))
                elif kind == GRAPH_INITIALIZER and not isinstance(message, int):
                    _add_tensor(found.tensors, message)
    except (IndexError, ValueError, UnicodeDecodeError) as error:
        raise WeightsError(f"{path} is not an ONNX file, or is damaged ({error}).") from None
    return found


def _fields(message: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """(field number, value) of each field: an integer, or the bytes of a string or an inner message."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, wire = key >> 3, key & 7
        if wire == VARINT:
            value, at = _varint(message, at)
            yield number, value
            continue
        if wire == BYTES:
            length, at = _varint(message, at)
        elif wire in (FIXED32, FIXED64):
            length = 4 if wire == FIXED32 else 8
        else:
            raise ValueError(f"unknown wire type {wire}")
        if at + length > len(message):
            raise ValueError("it ends too early")
        yield number, message[at : at + length]
        at += length


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 64:
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError("a number is too long")


def _node(message: memoryview) -> OnnxNode:
    node = OnnxNode()
    for number, value in _fields(message):
        if isinstance(value, int):
            continue
        if number == NODE_INPUT:
            node.inputs.append(bytes(value).decode())
        elif number == NODE_NAME:
            node.name = bytes(value).decode()
        elif number == NODE_OP:
            node.op = bytes(value).decode()
    return node


def _add_tensor(tensors: dict[str, NDArray[np.float32]], message: memoryview) -> None:
    shape: list[int] = []
    name, kind, raw = "", 0, memoryview(b"")
    for number, value in _fields(message):
        if number == TENSOR_DIMS:
            shape += [value] if isinstance(value, int) else list(_packed(value))
        elif number == TENSOR_TYPE and isinstance(value, int):
            kind = value
        elif number == TENSOR_NAME and not isinstance(value, int):
            name = bytes(value).decode()
        elif number == TENSOR_RAW and not isinstance(value, int):
            raw = value
    if kind == FLOAT:
        tensors[name] = np.frombuffer(raw, dtype="<f4").reshape(shape)


def _packed(message: memoryview) -> Iterator[int]:
    at = 0
    while at < len(message):
        value, at = _varint(message, at)
        yield value
