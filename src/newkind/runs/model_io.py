"""A trained model on disk: tensors as safetensors, everything else as JSON. Nothing in it is run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file

from newkind.backbone.loader import Backbone, load_backbone
from newkind.config import BackboneConfig, DiscoverConfig, from_json, to_json
from newkind.errors import RunError, WeightsError
from newkind.methods.registry import build_method, find_method
from newkind.runs.assignments import Category
from newkind.runs.run import Run
from newkind.training.checkpoint import write_safely
from newkind.training.network import Network

__all__ = ["LoadedModel", "load_model", "save_model"]


@dataclass(frozen=True)
class LoadedModel:
    """A network with all that is needed to use it."""

    network: Network
    prepared: Backbone | None
    """None for a model on ready features."""
    trunk: BackboneConfig
    categories: list[Category]
    n_known: int
    dim: int


def save_model(
    run: Run, network: Network, config: DiscoverConfig, *, dim: int, n_known: int, prepared: Backbone | None
) -> None:
    """The tuned blocks and the heads; the frozen trunk is named by its hash."""
    tensors = {
        name: value.detach().cpu().contiguous()
        for name, value in network.state_dict().items()
        if not name.startswith("teacher")
    }
    write_safely(run.model_file, tensors, {"newkind": "model"})
    run.write_json(
        run.model_card,
        {
            "method": config.method_name,
            "method_config": to_json(config.method),
            "trunk": to_json(config.backbone),
            "weights_sha256": prepared.sha256 if prepared else None,
            "weights_source": prepared.source if prepared else None,
            "dim": dim,
            "n_known": n_known,
        },
    )


def load_model(run: Run, *, device: str = "auto", weights: Path | None = None) -> LoadedModel:
    """The model of a finished run; the backbone's weights must be the ones that it was trained on."""
    run.config()
    card = run.read_json(run.model_card)
    try:
        moved = {} if weights is None else {"weights": weights}
        trunk = from_json(BackboneConfig, card["trunk"] | {"device": device} | moved)
        kind = find_method(card["method"]).config
        method = build_method(card["method"], card["dim"], from_json(kind, card["method_config"]))
        categories = [Category(**row) for row in run.read_json(run.categories_file)["categories"]]
        n_known, dim, sha256 = int(card["n_known"]), int(card["dim"]), card["weights_sha256"]
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(f"{run.model_card} cannot be read ({error}).") from None
    prepared = load_backbone(trunk) if sha256 else None
    if prepared is not None and prepared.sha256 != sha256:
        raise WeightsError(
            f"The run was trained on other weights of {trunk.name} (sha256 {sha256[:12]}...) than these ({prepared.sha256[:12]}...)."
        )
    network = Network(prepared.tuned if prepared else None, method, with_teacher=False)
    try:
        network.load_state_dict(load_file(run.model_file))
    except (OSError, SafetensorError, RuntimeError) as error:
        raise RunError(f"{run.model_file} is damaged or of another model ({str(error).splitlines()[0]}).") from None
    if prepared is not None:
        network.to(prepared.device)
    return LoadedModel(network, prepared, trunk, categories, n_known, dim)
