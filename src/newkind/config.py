"""What `discover` is asked to do: the parts' own configs together, validated where they are built, kept as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, TypeVar

from newkind.backbone.loader import TrunkConfig
from newkind.data.catalog import Collection
from newkind.errors import ConfigError
from newkind.methods.method import MethodConfig
from newkind.methods.registry import method_config
from newkind.training.trainer import TrainingConfig

__all__ = [
    "DiscoverConfig",
    "configure",
    "default_epochs",
    "default_recipe",
    "from_json",
    "read_n_categories",
    "read_settings",
    "to_json",
]

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class DiscoverConfig:
    """Everything but the data and the folder."""

    method: MethodConfig
    method_name: str = "simgcd"
    training: TrainingConfig = field(default_factory=TrainingConfig)
    trunk: TrunkConfig = field(default_factory=TrunkConfig)
    recipe: str = "release"
    """The name under which the method's config was made."""
    online: bool = False
    """Fresh views every epoch instead of the token cache."""
    auto_k: bool = False
    """The number of categories is found out from the features before training, and the method's own is only a guess."""
    k_is_room: bool = False
    """The number of categories is the most there may be: if it is more than the features can tell apart, fewer are taken."""
    known_k: str = ""
    """Where the number of categories came from, in words."""


def configure(
    collection: Collection,
    *,
    training: TrainingConfig,
    trunk: TrunkConfig,
    method: str = "simgcd",
    n_categories: int | Literal["auto"] | None = None,
    recipe: str | None = None,
    settings: dict[str, Any] | None = None,
    benchmark: str = "",
    online: bool = False,
    exactly: bool = False,
) -> DiscoverConfig:
    """Fills in what was not asked for: K (the truth's, or found out from the features), epsilon (the benchmark's, or 1), the recipe.

    exactly: n_categories is the number itself also under the recipe `modern`, which takes it for the most there may be.
    """
    recipe = recipe or default_recipe(method, trunk.backbone)
    known = collection.catalog.n_known_classes
    auto_k = n_categories == "auto" or (n_categories is None and collection.truth is None)
    if auto_k:
        k, why = max(2 * known, 2), "the number of categories is found out from the features"
    elif n_categories is not None:
        k, why = int(n_categories), f"{n_categories} categories, as asked"
    else:
        k = len(collection.truth.class_names) if collection.truth else 0
        why = f"{k} categories, as many as the truth has"
    return DiscoverConfig(
        method=method_config(method, n_categories=k, recipe=recipe, benchmark=benchmark, settings=settings),
        method_name=method,
        training=training,
        trunk=trunk,
        recipe=recipe,
        online=online,
        auto_k=auto_k,
        k_is_room=recipe == "modern" and n_categories is not None and not auto_k and not exactly,
        known_k=why,
    )


def default_recipe(method: str, backbone: str) -> str:
    """SimGCD's `modern`, except on the backbones that the published recipe was made for (DINO v1)."""
    return "modern" if method == "simgcd" and not backbone.endswith(".dino") else "release"


def default_epochs(method: str, backbone: str, recipe: str | None) -> int:
    """40 for SimGCD's `modern`, which starts from categories instead of from random prototypes; otherwise the published 200."""
    return 40 if method == "simgcd" and (recipe or default_recipe(method, backbone)) == "modern" else 200


def read_n_categories(text: str | None) -> int | Literal["auto"] | None:
    """As on a command line: a number, auto, or nothing."""
    if text is None or text == "auto":
        return text  # type: ignore[return-value]
    try:
        return int(text)
    except ValueError:
        raise ConfigError(f"The number of categories is a whole number or auto; got '{text}'.") from None


def read_settings(texts: list[str]) -> dict[str, str]:
    """name=value, as on a command line."""
    settings = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise ConfigError(f"A setting is written as name=value; got '{text}'.")
        settings[name.strip().replace("-", "_")] = value.strip()
    return settings


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
