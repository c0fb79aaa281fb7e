"""Base class of the scikit-learn estimators: fit and predict on paths, images or features, saved as run folders."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClusterMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from newkind.api import Discovery, discover, load
from newkind.config import DEFAULT_BACKBONE, EffortName
from newkind.data import Collection
from newkind.data.array_likes import are_numbers, from_paths, list_of_labels, list_of_paths
from newkind.data.arrays import from_arrays, from_features
from newkind.errors import RunError
from newkind.methods.registry import find_method
from newkind.pipeline.predict import model_features

__all__ = ["DiscoveryEstimator"]

ONLY_LAST = 10**9
"""Epochs between two evaluations such that only the last epoch is evaluated."""


class DiscoveryEstimator(TransformerMixin, ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Base class: discovers categories among images or ready features.

    X is an array-like of paths, uint8 images (n, H, W) or (n, H, W, C), or features (n, d). With features no backbone is
    used: only the heads of the method are trained.

    Parameters
    ----------
    n_categories : int or "auto", optional
        Number of categories, known and new together. Default: "auto", which estimates it.
    recipe : str, optional
        Recipe of SimGCD: modern, release or paper. Default: modern, or release on a DINO v1 backbone.
    effort : {"quick", "standard", "thorough"}, optional
        One view per image, several views, or training included. Default: standard; thorough for methods that need training.
    settings : dict, optional
        Settings of the method, such as {"entropy_weight": 2.0}.
    epochs : int, optional
        Number of epochs; 0 for no training. Default: that of the effort; 200 for methods that need training.
    batch_size : int, optional
        Batch size. Default: that of the method, 128 for most.
    learning_rate : float, optional
        Learning rate for a batch of 128. Default: that of the method, 0.1 for most.
    backbone : str, default="vit_small_patch14_dinov2.lvd142m"
        Name of a plain ViT in timm.
    weights : str, optional
        File with the weights of the backbone.
    random_weights : bool, default=False
        Use random weights, for trials.
    image_size : int, default=224
        Side of the square input in pixels.
    views : int, optional
        Number of random views per image. Default: that of the effort; 8 for methods that need training.
    tuned_blocks : int, default=1
        Number of blocks that are trained.
    device : str, default="auto"
        Device.
    random_state : int, default=0
        Random seed.
    verbose : bool, default=False
        Show messages and progress bars.

    Attributes
    ----------
    labels_ : ndarray of shape (n,)
        Category of every item; -1 or "" for an image that cannot be read.
    classes_ : ndarray of shape (K,)
        Known classes, then new categories: numbers after the largest known one, or names new-01, new-02, ...
    n_features_in_ : int
        Number of features; only after `fit` on features.

    Examples
    --------
    >>> from newkind.sklearn import GCD
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> model = GCD(n_categories=3, epochs=1, device="cpu").fit(X, ["bee", "wasp", ""] * 20)
    >>> model.classes_.tolist(), model.labels_[:2].tolist()
    (['bee', 'wasp', 'new-01'], ['bee', 'wasp'])
    """

    _method: ClassVar[str]
    _classes: ClassVar[dict[str, type[DiscoveryEstimator]]] = {}
    """Estimator class of each method."""

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        DiscoveryEstimator._classes[cls._method] = cls

    def __init__(
        self,
        n_categories: int | Literal["auto"] | None = None,
        *,
        recipe: str | None = None,
        effort: EffortName | None = None,
        settings: dict[str, Any] | None = None,
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        backbone: str = DEFAULT_BACKBONE,
        weights: str | None = None,
        random_weights: bool = False,
        image_size: int = 224,
        views: int | None = None,
        tuned_blocks: int = 1,
        device: str = "auto",
        random_state: int = 0,
        verbose: bool = False,
    ) -> None:
        self.n_categories = n_categories
        self.recipe = recipe
        self.effort = effort
        self.settings = settings
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.backbone = backbone
        self.weights = weights
        self.random_weights = random_weights
        self.image_size = image_size
        self.views = views
        self.tuned_blocks = tuned_blocks
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> DiscoveryEstimator:
        """Discover the categories of X.

        Parameters
        ----------
        X : array-like
            Paths, uint8 images or features.
        y : array-like of shape (n,)
            Labels; -1, None, NaN or "" for unlabelled.

        Returns
        -------
        self
        """
        if y is None:
            raise ValueError("This estimator requires y to be passed, but the target y is None.")
        collection = self._collect(X, y, reset=True)
        own = ("backbone", "weights", "random_weights", "image_size", "tuned_blocks", "device")
        asked = {name: value for name in ("epochs", "views") if (value := getattr(self, name)) is not None}
        self._discovery = discover(
            collection,
            self._own_folder() / "run",
            method=self._method,
            recipe=self.recipe,
            effort=self.effort,
            n_categories=self.n_categories,
            settings=self.settings,
            first_answer=False,
            report=False,
            verbose=self.verbose,
            evaluate_every=ONLY_LAST,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            seed=self.random_state,
            **{name: getattr(self, name) for name in own},
            **asked,
        )
        self.classes_ = _classes(self._discovery, are_numbers(y))
        by_name = {category.name: self.classes_[category.prototype] for category in self._discovery.categories}
        found = {line.file: by_name[line.category] for line in self._discovery.assignments}
        missing = -1 if self.classes_.dtype.kind == "i" else ""
        self.labels_ = np.array([found.get(name, missing) for name in collection.catalog.items.names])
        return self

    def fit_predict(self, X: Any, y: Any = None, **_: Any) -> NDArray[Any]:
        """Discover the categories of X and return that of every item.

        Parameters
        ----------
        X, y : array-like
            As for `fit`.

        Returns
        -------
        ndarray of shape (n,)
            As `labels_`.
        """
        return self.fit(X, y).labels_

    def fit_transform(self, X: Any, y: Any = None, **_: Any) -> NDArray[np.float32]:
        """Discover the categories of X and return its features after training.

        Parameters
        ----------
        X, y : array-like
            As for `fit`.

        Returns
        -------
        ndarray of float32, shape (n, d)
            As `transform(X)`.
        """
        return self.fit(X, y).transform(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """Most likely category of each item.

        Parameters
        ----------
        X : array-like
            Items of the kind that the estimator was fitted on.

        Returns
        -------
        ndarray of shape (n,)
            Values of `classes_`.
        """
        best = self.predict_proba(X).argmax(axis=1)
        chosen: NDArray[Any] = self.classes_[best]
        return chosen

    def predict_proba(self, X: Any) -> NDArray[np.float32]:
        """Probability of each category.

        Parameters
        ----------
        X : array-like
            Items of the kind that the estimator was fitted on.

        Returns
        -------
        ndarray of float32, shape (n, K)
            Columns as `classes_`.
        """
        model = self._fitted().model
        device = next(model.network.method.parameters(), torch.zeros(0)).device
        with torch.no_grad():
            p = model.network.category_probabilities(torch.from_numpy(self._features(X)).to(device))
            return model.layout.probabilities(p).cpu().numpy()

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Class features of unit length.

        Parameters
        ----------
        X : array-like
            Items of the kind that the estimator was fitted on.

        Returns
        -------
        ndarray of float32, shape (n, d)
        """
        features = self._features(X)
        unit: NDArray[np.float32] = features / np.maximum(np.linalg.norm(features, axis=1, keepdims=True), 1e-12)
        return unit

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:  # noqa: ARG002
        """Names of the columns of `transform`.

        Parameters
        ----------
        input_features : object, optional
            Ignored; scikit-learn passes it.

        Returns
        -------
        ndarray of object, shape (d,)
        """
        name = type(self).__name__.lower()
        return np.array([f"{name}{i}" for i in range(self._fitted().model.dim)], dtype=object)

    def save(self, path: str | Path) -> None:
        """Save as a run folder, which `newkind.load` and the command line read too.

        Parameters
        ----------
        path : str or path
            Folder to create.
        """
        found = self._fitted()
        if Path(path).exists():
            raise RunError(
                f"{path} exists already. It was not changed.", fix="Save to another folder.", code="exists", folder=path
            )
        shutil.copytree(found.run.folder, path)

    @classmethod
    def load(cls, path: str | Path) -> DiscoveryEstimator:
        """Load a finished run.

        Parameters
        ----------
        path : str or path
            A run folder, written by `save`, `discover` or the command line.

        Returns
        -------
        DiscoveryEstimator
            A fitted estimator of the class that belongs to the method of the run.
        """
        found = load(path)
        content, config = found.run.config(), found.run.settings()
        name, training, backbone = config["method_name"], config["training"], config["backbone"]
        recipe = {"modern": "modern", "simgcd": "release"}.get(name)
        usual = find_method(name).config()
        changed = {
            item.name: config["method"][item.name]
            for item in fields(usual)
            if item.name in config["method"] and config["method"][item.name] != getattr(usual, item.name)
        }
        model = cls._classes["simgcd" if name == "modern" else name](
            content["n_categories"].get("used", len(found.categories)),
            recipe=recipe,
            effort=config.get("effort"),
            settings=changed or None,
            random_state=training["seed"],
            backbone=backbone["name"],
            **{name: training[name] for name in ("epochs", "batch_size", "learning_rate")},
            **{
                name: backbone[name]
                for name in ("weights", "random_weights", "image_size", "views", "tuned_blocks", "device")
            },
        )
        model._discovery = found
        model.classes_ = _classes(found, all(c.name.isdecimal() for c in found.categories if c.status == "known"))
        missing = -1 if model.classes_.dtype.kind == "i" else ""
        by_name = {"": missing} | dict(zip((c.name for c in found.categories), model.classes_, strict=True))
        model.labels_ = np.array([by_name[line.category] for line in found.assignments])
        if found.run.read_json(found.run.model_card).get("weights_sha256") is None:
            model.n_features_in_ = found.model.dim
        return model

    def __getstate__(self) -> dict[str, Any]:
        """State with the files of the run, whose folder is removed with this object."""
        state = dict(super().__getstate__())
        found = state.pop("_discovery", None)
        if found is not None:
            paths = [path for path in found.run.folder.rglob("*") if path.is_file()]
            state["_files"] = {str(path.relative_to(found.run.folder)): path.read_bytes() for path in paths}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        files = state.pop("_files", None)
        super().__setstate__(state)
        if files is not None:
            folder = self._own_folder()
            for name, content in files.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(content)
            self._discovery = load(folder)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_discovery")

    def _fitted(self) -> Discovery:
        check_is_fitted(self)
        return self._discovery

    def _own_folder(self) -> Path:
        """A folder that is removed with this estimator."""
        folder = tempfile.mkdtemp(prefix="newkind-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return Path(folder)

    def _features(self, X: Any) -> NDArray[np.float32]:
        """Class features (n, d), not normalised."""
        return model_features(self._fitted().model, self._collect(X, None, reset=False).catalog.items)

    def _collect(self, X: Any, y: Any, *, reset: bool) -> Collection:
        """Collection of paths, images or features, by the type of X."""
        paths = list_of_paths(X)
        if paths is not None:
            return from_paths(paths, y)
        values = X if hasattr(X, "columns") else np.asarray(X)
        if getattr(values, "dtype", None) == np.uint8 and values.ndim >= 3:
            return from_arrays(values, list_of_labels(y, len(values)))
        checked = validate_data(self, X, reset=reset, dtype=np.float32, ensure_min_samples=2 if reset else 1)
        return from_features(checked, list_of_labels(y, len(checked)))


def _classes(found: Discovery, numeric: bool) -> NDArray[Any]:
    """A value for each category: numbers if the labels are numbers, names otherwise."""
    if not numeric:
        return np.array([category.name for category in found.categories])
    known = [int(category.name) for category in found.categories if category.status == "known"]
    n_new = len(found.categories) - len(known)
    return np.array(known + list(range(max(known) + 1, max(known) + 1 + n_new)))
