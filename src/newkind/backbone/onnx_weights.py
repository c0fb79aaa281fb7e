"""Weights in an ONNX file. Its tensors are read with `onnx`; the graph is never run."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from newkind.errors import WeightsError

__all__ = ["OnnxNode", "OnnxTensors", "read_onnx"]


@dataclass(frozen=True)
class OnnxNode:
    """A node of the graph.

    Parameters
    ----------
    name : str
        Name of the node.
    op : str
        Name of its operator.
    inputs : list of str
        Names of its inputs.
    """

    name: str
    op: str
    inputs: list[str]


@dataclass(frozen=True)
class OnnxTensors:
    """Content of an ONNX file.

    Parameters
    ----------
    nodes : list of OnnxNode
        Nodes of the graph.
    tensors : dict of str to ndarray of float32
        Its fp32 initialisers by name.
    """

    nodes: list[OnnxNode] = field(default_factory=list)
    tensors: dict[str, NDArray[np.float32]] = field(default_factory=dict)


def read_onnx(path: Path) -> OnnxTensors:
    """Read the nodes and the fp32 tensors of an ONNX file.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    OnnxTensors

    Raises
    ------
    WeightsError
        With code `damaged` for a file that is damaged or not ONNX, `external-data` for a file that refers to other files.
    """
    # Imported here: it takes 0.2 s, and is needed once per machine.
    import onnx
    from onnx import numpy_helper
    from onnx.external_data_helper import uses_external_data

    try:
        graph = onnx.load_model_from_string(path.read_bytes()).graph
    except Exception as error:  # noqa: BLE001 - protobuf's DecodeError, which is no subclass of a built-in error
        raise WeightsError(f"{path} is damaged or not an ONNX file ({error}).", code="damaged", file=path) from None
    tensors = {}
    for tensor in graph.initializer:
        if tensor.data_type != onnx.TensorProto.FLOAT:
            continue
        if uses_external_data(tensor):  # `to_array` would read any file that the tensor names
            raise WeightsError(
                f"{path} stores the tensor '{tensor.name}' in another file.",
                code="external-data",
                file=path,
                tensor=tensor.name,
            )
        try:
            tensors[tensor.name] = numpy_helper.to_array(tensor).astype(np.float32, copy=False)
        except ValueError as error:  # the values do not fill the shape
            raise WeightsError(f"{path} is damaged ({error}).", code="damaged", file=path) from None
    return OnnxTensors([OnnxNode(node.name, node.op_type, list(node.input)) for node in graph.node], tensors)
