"""What `discover` is asked to do: the parts' own configs together, validated where they are built, kept as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from newkind.backbone.preparing import TrunkConfig
from newkind.data.catalog import Collection
from newkind.errors import ConfigError
from newkind.methods.simgcd import BENCHMARK_EPSILON, SimGCDConfig, simgcd_recipe
from newkind.training.engine import TrainingConfig

__all__ = ["DiscoverConfig", "configure", "from_json", "to_json"]

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class DiscoverConfig:
    """Everything but the data and the folder."""

    method: SimGCDConfig
    training: TrainingConfig = field(default_factory=TrainingConfig)
    trunk: TrunkConfig = field(default_factory=TrunkConfig)
    recipe: str = "release"
    """The name under which the method's config was made."""
    online: bool = False
    """Fresh views every epoch instead of the token cache."""
    known_k: str = ""
    """Where the number of categories came from, in words."""


def configure(
    collection: Collection,
    *,
    training: TrainingConfig,
    trunk: TrunkConfig,
    n_categories: int | None = None,
    recipe: str = "release",
    entropy_weight: float | None = None,
    benchmark: str = "",
    online: bool = False,
) -> DiscoverConfig:
    """Fills in what was not asked for: K (the truth's, or twice the known classes) and epsilon (the benchmark's, or 1)."""
    known = collection.catalog.n_known_classes
    if n_categories is not None:
        k, why = n_categories, f"{n_categories} categories, as asked"
    elif collection.truth is not None:
        k = len(collection.truth.class_names)
        why = f"{k} categories, as many as the truth has"
    else:
        k = 2 * known
        why = f"room for {k} categories, twice the known ones; --n-categories sets it"
    epsilon = BENCHMARK_EPSILON.get(benchmark, 1.0) if entropy_weight is None else entropy_weight
    method = simgcd_recipe(recipe, n_categories=k, entropy_weight=epsilon)
    return DiscoverConfig(method=method, training=training, trunk=trunk, recipe=recipe, online=online, known_k=why)


def to_json(config: Any) -> dict[str, Any]:
    """Nested dataclasses to plain JSON values."""
    plain = asdict(config)

    def clean(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: clean(item) for key, item in value.items()}
        return str(value) if isinstance(value, Path) else value

    return {key: clean(value) for key, value in plain.items()}


def from_json(kind: type[T], values: dict[str, Any]) -> T:
    """A flat config dataclass from JSON; unknown or missing fields are an error that names them."""
    known = {item.name for item in fields(kind)}  # type: ignore[arg-type]
    if unknown := sorted(values.keys() - known):
        raise ConfigError(f"{kind.__name__} has no field {', '.join(unknown)}.")
    if values.get("weights") is not None:
        values = values | {"weights": Path(values["weights"])}
    try:
        return kind(**values)
    except TypeError as error:
        raise ConfigError(f"{kind.__name__} cannot be read ({error}).") from None
