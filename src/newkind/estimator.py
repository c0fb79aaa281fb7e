"""Base class of the scikit-learn estimators: fit and predict on paths, images or features, saved as run folders."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin, TransformerMixin
from sklearn.utils.validation import validate_data

from newkind.config import DEFAULT_BACKBONE, EffortName
from newkind.errors import RunError
from newkind.fitted_as_run import FittedAsRun

# What computes is imported when it is used: `from newkind import SimGCD` costs less than `import torch`.
if TYPE_CHECKING:
    from numpy.typing import NDArray

    from newkind.data import Collection

__all__ = ["DiscoveryEstimator"]

ONLY_LAST = 10**9
"""Epochs between two evaluations such that only the last epoch is evaluated."""


class DiscoveryEstimator(FittedAsRun, TransformerMixin, ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Base class: discovers categories among images or ready features.

    X is an array-like of image files (paths or contents), PIL images or uint8 pixels, an array of images (n, H, W) or
    (n, H, W, C), or features (n, d). With features no backbone is used: only the heads of the method are trained.

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
    is_new_ : ndarray of bool, shape (K,)
        Whether each of them is a new category.
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

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Self:
        """Discover the categories of X.

        Parameters
        ----------
        X : array-like
            Image files, images or features.
        y : array-like of shape (n,)
            Labels; -1, None, NaN or "" for unlabelled.
        groups : array-like of shape (n,), optional
            Group of each item, such as its burst or specimen: items of a group share a category.

        Returns
        -------
        self
        """
        if y is None:
            raise ValueError("This estimator requires y to be passed, but the target y is None.")
        from newkind.api import discover
        from newkind.data.array_likes import are_numbers

        collection = self._collect(X, y, groups, reset=True)
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
        self._set_classes(numeric=are_numbers(y))
        by_name = {category.name: self.classes_[category.prototype] for category in self._discovery.categories}
        found = {line.file: by_name[line.category] for line in self._discovery.assignments}
        self.labels_ = np.array([found.get(name, self._missing()) for name in collection.catalog.items.names])
        return self

    def fit_predict(self, X: Any, y: Any = None, groups: Any = None, **_: Any) -> NDArray[Any]:
        """Discover the categories of X and return that of every item.

        Parameters
        ----------
        X, y, groups : array-like
            As for `fit`.

        Returns
        -------
        ndarray of shape (n,)
            As `labels_`.
        """
        return self.fit(X, y, groups).labels_

    def fit_transform(self, X: Any, y: Any = None, groups: Any = None, **_: Any) -> NDArray[np.float32]:
        """Discover the categories of X and return its features after training.

        Parameters
        ----------
        X, y, groups : array-like
            As for `fit`.

        Returns
        -------
        ndarray of float32, shape (n, d)
            As `transform(X)`.
        """
        return self.fit(X, y, groups).transform(X)

    def predict(self, X: Any, groups: Any = None) -> NDArray[Any]:
        """Most likely category of each item.

        Parameters
        ----------
        X : array-like
            Items of the kind that the estimator was fitted on.
        groups : array-like of shape (n,), optional
            As for `fit`; groups of their own.

        Returns
        -------
        ndarray of shape (n,)
            Values of `classes_`; -1 or "" for an image that cannot be read, with a warning.
        """
        p = self.predict_proba(X, groups)
        is_read = ~np.isnan(p[:, 0])
        chosen = self.classes_[np.nan_to_num(p).argmax(axis=1)]
        return np.array([k if read else self._missing() for k, read in zip(chosen, is_read, strict=True)])

    def predict_proba(self, X: Any, groups: Any = None) -> NDArray[np.float32]:
        """Probability of each category.

        Parameters
        ----------
        X : array-like
            Items of the kind that the estimator was fitted on.
        groups : array-like of shape (n,), optional
            As for `predict`.

        Returns
        -------
        ndarray of float32, shape (n, K)
            Columns as `classes_`; NaN for an image that cannot be read.
        """
        from newkind.pipeline.given_inputs import groups_of
        from newkind.pipeline.predict import probabilities

        features = self._features(X)
        numbers = None if groups is None else groups_of(groups, len(features))
        return probabilities(self._fitted().model, features, groups=numbers)

    def novelty(self, X: Any) -> NDArray[np.float32]:
        """Probability of all new categories together.

        Parameters
        ----------
        X : array-like
            Items of the kind that the estimator was fitted on.

        Returns
        -------
        ndarray of float32, shape (n,)
            NaN for an image that cannot be read.
        """
        p = self.predict_proba(X)
        new: NDArray[np.float32] = p[:, self.is_new_].sum(axis=1)
        return new

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
        from newkind.api import load
        from newkind.pipeline.estimator_settings import estimator_settings

        found = load(path)
        method, parameters = estimator_settings(found.run)
        if method not in cls._classes:
            raise RunError(
                f"The method {method} of {path} has no estimator.",
                fix="Use newkind.load, or import the module with its estimator first.",
                code="no-estimator",
                method=method,
            )
        model = cls._classes[method](**parameters)
        model._discovery = found
        model._set_classes(numeric=all(c.name.isdecimal() for c in found.categories if c.status == "known"))
        names = (category.name for category in found.categories)
        by_name = {"": model._missing()} | dict(zip(names, model.classes_, strict=True))
        model.labels_ = np.array([by_name[line.category] for line in found.assignments])
        if found.run.read_json(found.run.model_card).get("weights_sha256") is None:
            model.n_features_in_ = found.model.dim
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def _features(self, X: Any) -> NDArray[np.float32]:
        """Class features (n, d), not normalised; NaN and a warning for images that cannot be read."""
        from newkind.pipeline.predict import model_features

        items = self._collect(X, None, None, reset=False).catalog.items
        features, skipped = model_features(self._fitted().model, items)
        if skipped:
            more = f" and {len(skipped) - 1} more images" if len(skipped) > 1 else ""
            warnings.warn(f"{skipped[0].name}{more} cannot be read: {skipped[0].reason}.", stacklevel=3)
        return features

    def _collect(self, X: Any, y: Any, groups: Any, *, reset: bool) -> Collection:
        """Collection of images or features, by the type of X."""
        from newkind.data.array_likes import from_images, given_images, list_of_labels
        from newkind.data.arrays import from_arrays, from_features

        images = given_images(X)
        if images is not None:
            return from_images(images, y, groups)
        values = X if hasattr(X, "columns") else np.asarray(X)
        if getattr(values, "dtype", None) == np.uint8 and values.ndim >= 3:
            return from_arrays(values, list_of_labels(y, len(values)), groups=groups)
        checked = validate_data(self, X, reset=reset, dtype=np.float32, ensure_min_samples=2 if reset else 1)
        return from_features(checked, list_of_labels(y, len(checked)), groups=groups)

    def _set_classes(self, *, numeric: bool) -> None:
        """A value for each category: numbers if the labels are numbers, names otherwise."""
        categories = self._discovery.categories
        self.is_new_ = np.array([category.status == "new" for category in categories])
        self.classes_ = np.array([category.name for category in categories])
        if numeric:
            known = [int(category.name) for category in categories if category.status == "known"]
            n_new = len(categories) - len(known)
            self.classes_ = np.array(known + list(range(max(known) + 1, max(known) + 1 + n_new)))

    def _missing(self) -> int | str:
        """What stands for the category of an image that cannot be read."""
        return -1 if self.classes_.dtype.kind == "i" else ""
