"""The scikit-learn face: `SimGCD(n_categories=...).fit(X, y)`, with y = -1, None, NaN or "" for unlabelled."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClusterMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from newkind.api import Discovery, discover, load
from newkind.backbone.online import OnlineTokens
from newkind.backbone.ready import ReadyFeatures
from newkind.config import BackboneConfig, TrainingConfig, default_epochs
from newkind.data.catalog import Catalog, Collection, Features, FileImages, Images
from newkind.data.labels import encode_labels
from newkind.data.names import Names
from newkind.data.sources import from_arrays, from_features
from newkind.errors import DataError, RunError

__all__ = ["SimGCD"]


class SimGCD(TransformerMixin, ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Discovers categories among images (paths or uint8 arrays) or ready features (N, d).

    With features no backbone is run: the projector and the classifier are trained on them.
    After `fit`: `labels_` (N,), a category for every item; `classes_` (K,), the known classes, then the new ones
    (numbers after the largest known one, or names new-01, ...); `n_features_in_` for features.
    """

    def __init__(
        self,
        n_categories: int | Literal["auto"] | None = None,
        *,
        recipe: str | None = None,
        entropy_weight: float | None = None,
        epochs: int | None = None,
        batch_size: int = 128,
        learning_rate: float = 0.1,
        backbone: str = "vit_small_patch14_dinov2.lvd142m",
        weights: str | None = None,
        random_weights: bool = False,
        image_size: int = 224,
        n_views: int = 8,
        n_tuned: int = 1,
        device: str = "auto",
        random_state: int = 0,
        verbose: bool = False,
    ) -> None:
        self.n_categories = n_categories
        self.recipe = recipe
        self.entropy_weight = entropy_weight
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.backbone = backbone
        self.weights = weights
        self.random_weights = random_weights
        self.image_size = image_size
        self.n_views = n_views
        self.n_tuned = n_tuned
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> SimGCD:
        """X: paths, uint8 images (N, H, W[, C]) or features (N, d); y: (N,), -1, None, NaN or "" for unlabelled."""
        collection = _collect(X, y)
        epochs = default_epochs("simgcd", self.backbone, self.recipe) if self.epochs is None else self.epochs
        self._discovery = discover(
            collection,
            self._own_folder() / "run",
            n_categories=self.n_categories,
            recipe=self.recipe,
            settings={} if self.entropy_weight is None else {"entropy_weight": self.entropy_weight},
            trunk=BackboneConfig(
                backbone=self.backbone,
                weights=None if self.weights is None else Path(self.weights),
                random_weights=self.random_weights,
                image_size=self.image_size,
                n_views=self.n_views,
                n_tuned=self.n_tuned,
                device=self.device,
            ),
            training=TrainingConfig(
                epochs=epochs,
                batch_size=self.batch_size,
                learning_rate=self.learning_rate,
                seed=self.random_state,
                evaluate_every=epochs,
            ),
            report=False,
        )
        if isinstance(collection.catalog.items, Features):
            self.n_features_in_ = collection.catalog.items.values.shape[1]
        self.classes_ = _classes(self._discovery, _is_numeric(y))
        by_name = {category.name: self.classes_[category.prototype] for category in self._discovery.categories}
        found = {line.file: by_name[line.category] for line in self._discovery.assignments}
        missing = -1 if self.classes_.dtype.kind == "i" else ""  # an image that could not be decoded
        self.labels_ = np.array([found.get(name, missing) for name in collection.catalog.items.names])
        return self

    def fit_predict(self, X: Any, y: Any = None, **_: Any) -> NDArray[Any]:
        """The category of every item."""
        return self.fit(X, y).labels_

    def fit_transform(self, X: Any, y: Any = None, **_: Any) -> NDArray[np.float32]:
        return self.fit(X, y).transform(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """(n,): the best of `classes_`."""
        best = self.predict_proba(X).argmax(axis=1)
        chosen: NDArray[Any] = self.classes_[best]
        return chosen

    def predict_proba(self, X: Any) -> NDArray[np.float32]:
        """(n, K), columns as `classes_`."""
        return self._apply(X, "probabilities")

    def transform(self, X: Any) -> NDArray[np.float32]:
        """(n, d): L2-normalised features that the classifier sees."""
        features = self._apply(X, "features")
        unit: NDArray[np.float32] = features / np.maximum(np.linalg.norm(features, axis=1, keepdims=True), 1e-12)
        return unit

    def save(self, path: str | Path) -> None:
        """As a run folder, which `newkind.load` and the command line read too."""
        check_is_fitted(self)
        if Path(path).exists():
            raise RunError(f"{path} exists already.", fix="Save into another folder; nothing was touched.")
        shutil.copytree(self._discovery.run.folder, path)

    @classmethod
    def load(cls, path: str | Path) -> SimGCD:
        """A saved estimator; any run folder will do."""
        found = load(path)
        settings = found.run.config()["config"]
        training, trunk = settings["training"], settings["trunk"]
        model = cls(
            settings["method"]["n_categories"],
            recipe=settings["recipe"],
            entropy_weight=settings["method"]["entropy_weight"],
            random_state=training["seed"],
            **{name: training[name] for name in ("epochs", "batch_size", "learning_rate")},
            **{
                name: trunk[name]
                for name in ("backbone", "weights", "random_weights", "image_size", "n_views", "n_tuned", "device")
            },
        )
        model._discovery = found
        model.classes_ = _classes(found, all(c.name.isdecimal() for c in found.categories if c.status == "known"))
        by_name = {category.name: model.classes_[category.prototype] for category in found.categories}
        model.labels_ = np.array([by_name[line.category] for line in found.assignments])
        return model

    def __getstate__(self) -> dict[str, Any]:
        """With the run's files, since its folder goes with this object."""
        state = dict(super().__getstate__())
        found = state.pop("_discovery", None)
        if found is not None:
            state["_files"] = {path.name: path.read_bytes() for path in found.run.folder.iterdir() if path.is_file()}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        files = state.pop("_files", None)
        super().__setstate__(state)
        if files is not None:
            folder = self._own_folder()
            for name, content in files.items():
                (folder / name).write_bytes(content)
            self._discovery = load(folder)

    def _own_folder(self) -> Path:
        """A folder that lives as long as this estimator."""
        folder = tempfile.mkdtemp(prefix="newkind-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return Path(folder)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_discovery")

    def _apply(self, X: Any, what: str) -> NDArray[np.float32]:
        check_is_fitted(self)
        items = _collect(X, None).catalog.items
        model = self._discovery.model
        source: OnlineTokens | ReadyFeatures
        device = torch.device("cpu")
        if isinstance(items, Features):
            if items.values.shape[1] != model.dim or model.prepared is not None:
                raise DataError(
                    f"X has {items.values.shape[1]} features, but SimGCD is expecting {model.dim} features as input."
                )
            source = ReadyFeatures(items)
        else:
            if model.prepared is None:
                raise DataError("This SimGCD was fitted on features, not on images.")
            device = model.prepared.device
            source = OnlineTokens(items, model.prepared.trunk, model.trunk.recipe, device=device)
            if source.skipped:
                raise DataError(f"{source.skipped[0].name} cannot be used: {source.skipped[0].reason}.")
        batches = (np.arange(i, min(i + 64, len(items))) for i in range(0, len(items), 64))
        network = model.network.eval()
        with torch.no_grad():
            parts = [
                getattr(network, what)(tokens.to(device)).cpu().numpy() for tokens in source.evaluation_batches(batches)
            ]
        return np.concatenate(parts)


def _collect(X: Any, y: Any) -> Collection:
    """What X is, by its type."""
    if isinstance(X, list | tuple) and X and all(isinstance(item, str | Path) for item in X):
        given = encode_labels([None] * len(X) if y is None else y)
        if len(given.indices) != len(X):
            raise DataError(f"{len(X)} paths but {len(given.indices)} labels; expected one label an item.")
        items: Images = FileImages(Path(), Names(map(str, X)))
        return Collection(
            catalog=Catalog(items=items, labels=given.indices, class_names=given.class_names), origin="paths"
        )
    values = np.asarray(X)
    if values.dtype == np.uint8 and values.ndim >= 3:
        return from_arrays(values, [None] * len(values) if y is None else list(y))
    if values.ndim != 2:
        raise DataError(
            f"X is a list of paths, uint8 images (N, H, W[, C]) or features (N, d); got {values.dtype} {values.shape}."
        )
    return from_features(values.astype(np.float32), [None] * len(values) if y is None else list(y))


def _is_numeric(y: Any) -> bool:
    return not any(isinstance(value, str) and value for value in y)


def _classes(found: Discovery, numeric: bool) -> NDArray[Any]:
    """A value for each prototype: numbers if the labels were numbers, names otherwise."""
    if not numeric:
        return np.array([category.name for category in found.categories])
    known = [int(category.name) for category in found.categories if category.status == "known"]
    n_new = len(found.categories) - len(known)
    return np.array(known + list(range(max(known) + 1, max(known) + 1 + n_new)))


def _nothing(_: str) -> None:
    pass
