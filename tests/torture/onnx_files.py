"""A small exported model whose answer and description are given, to be damaged."""

from pathlib import Path

import numpy as np

from newkind.export.onnx_model import METADATA_KEY

__all__ = ["ABOUT", "onnx_file"]

ABOUT = (
    '{"image_size": 32, "crop_share": 0.875, "mirror": 0.5, "reducing_gap": 3.0, "views": [0, 1], "view_seed": 0, '
    '"categories": [{"name": "a", "status": "known"}, {"name": "b", "status": "new"}]}'
)


def onnx_file(path: Path, about: str, answer: np.ndarray) -> Path:
    """A model of two views of 32 pixels that answers the same to every image."""
    import onnx
    from onnx import helper, numpy_helper

    node = helper.make_node("Constant", [], ["probabilities"], value=numpy_helper.from_array(answer))
    pixels = helper.make_tensor_value_info("pixels", onnx.TensorProto.UINT8, ["n", 2, 3, 32, 32])
    found = helper.make_tensor_value_info("probabilities", onnx.TensorProto.FLOAT, None)
    model = helper.make_model(
        helper.make_graph([node], "g", [pixels], [found]), opset_imports=[helper.make_opsetid("", 18)]
    )
    model.ir_version = 9
    helper.set_model_props(model, {METADATA_KEY: about})
    path.write_bytes(model.SerializeToString())
    return path
