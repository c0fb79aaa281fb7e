"""Reading weights from ONNX files."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from error_codes import raises
from newkind.backbone.onnx_weights import read_onnx
from newkind.errors import WeightsError

VALUES = np.arange(600, dtype=np.float32).reshape(300, 2)


def model(*tensors: TensorProto) -> onnx.ModelProto:
    node = helper.make_node("MatMul", ["x", "w"], ["y"], name="/layer/MatMul")
    return helper.make_model(helper.make_graph([node], "graph", [], [], initializer=list(tensors)))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "m.onnx"
    counts = numpy_helper.from_array(np.arange(3), "counts")
    file.write_bytes(model(numpy_helper.from_array(VALUES, "w"), counts).SerializeToString())
    return file


def test_nodes_and_float_tensors_are_read(path: Path) -> None:
    graph = read_onnx(path)
    assert list(graph.tensors) == ["w"]
    assert np.array_equal(graph.tensors["w"], VALUES)
    assert [(n.op, n.name, n.inputs) for n in graph.nodes] == [("MatMul", "/layer/MatMul", ["x", "w"])]


def test_damaged_files(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with raises(WeightsError, "damaged") as caught:
        read_onnx(path)
    assert caught.value.facts["file"] == path
    path.write_bytes(b"\x07 this is text")
    with raises(WeightsError, "damaged"):
        read_onnx(path)


def test_values_that_do_not_fill_the_shape(path: Path) -> None:
    tensor = numpy_helper.from_array(VALUES, "w")
    tensor.dims[0] = 299
    path.write_bytes(model(tensor).SerializeToString())
    with raises(WeightsError, "damaged"):
        read_onnx(path)


def test_other_files_are_never_read(tmp_path: Path) -> None:
    (tmp_path / "secret.bin").write_bytes(VALUES.tobytes())
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[300, 2], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="secret.bin")
    (tmp_path / "m.onnx").write_bytes(model(tensor).SerializeToString())
    with raises(WeightsError, "external-data") as caught:
        read_onnx(tmp_path / "m.onnx")
    assert caught.value.facts["tensor"] == "w"
