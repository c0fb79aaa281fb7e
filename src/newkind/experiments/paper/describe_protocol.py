"""Description of a protocol for the head of each table."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from newkind.data import Features
from newkind.experiments.paper.dataset import BenchData
from newkind.experiments.paper.protocol import Protocol
from newkind.methods.simgcd import BENCHMARK_EPSILON

__all__ = ["SELECTION"]

SELECTION = "last epoch, one matching over all unlabelled images, nothing chosen by a label"
"""How the reported scores are chosen."""


def describe_protocol(
    protocol: Protocol, datas: Sequence[BenchData], *, k_rule: str, seeds: Sequence[int]
) -> dict[str, str]:
    """Data and conditions of a table; `k_rule` says how the number of categories is chosen."""
    backbone = protocol.backbone
    epsilons = [f"{BENCHMARK_EPSILON.get(data.benchmark, 1.0):g}" for data in datas]
    spread = "mean ± sample standard deviation" if len(seeds) > 1 else "a single run"
    views = "new in every epoch" if protocol.online else f"{backbone.views} per image, cached"
    return {
        "data": "; ".join(data.description() for data in datas),
        "backbone": _joined(datas, lambda data: _backbone(protocol, data)),
        "image_size": _joined(datas, lambda data: "none" if data.is_ready else f"{backbone.image_size} pixels"),
        "views": _joined(datas, lambda data: "none" if data.is_ready else views),
        "epochs": f"{protocol.epochs}",
        "optimizer": _optimizer(protocol),
        "recipe": f"{protocol.recipe} (SimGCD); epsilon {' / '.join(epsilons)} unless the table says otherwise",
        "k_rule": k_rule,
        "selection": SELECTION,
        "seeds": f"{', '.join(map(str, seeds))}; {spread}, in percent",
    }


def _optimizer(protocol: Protocol) -> str:
    kind = "equal for all methods" if protocol.equal else "each method's own unless the table says otherwise"
    size = "" if protocol.batch_size is None else f"; batch size {protocol.batch_size}"
    return f"learning rate, batch size and weight decay {kind}{size}"


def _backbone(protocol: Protocol, data: BenchData) -> str:
    items, config = data.collection.catalog.items, protocol.backbone
    if isinstance(items, Features):
        return f"none (precomputed features of dimension {items.values.shape[1]}; only heads are trained)"
    random = " with random weights" if config.random_weights else ""
    blocks = "last block" if config.tuned_blocks == 1 else f"last {config.tuned_blocks} blocks"
    return f"{config.name}{random}, {blocks} tuned"


def _joined(datas: Sequence[BenchData], describe: Callable[[BenchData], str]) -> str:
    """Descriptions of all data, each different one once."""
    return "; ".join(dict.fromkeys(describe(data) for data in datas))
