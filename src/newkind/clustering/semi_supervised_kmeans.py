"""Semi-supervised k-means as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from newkind.clustering.kmeans import assign, k_means
from newkind.data import Labels, encode_labels
from newkind.errors import ConfigError, DataError

__all__ = ["SemiSupervisedKMeans"]

CHUNK_ROWS = 4096


class SemiSupervisedKMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Semi-supervised k-means: labelled samples stay in their class, the others go to the nearest centre.

    Without labels it is k-means.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, known classes included.
    init : {"auto", "k-means++", "greedy"} or array-like of shape (n_first, n_features), default="auto"
        How centres are started. "greedy" draws several candidates per centre; "auto" is "greedy" if nothing is labelled
        and "k-means++" otherwise. An array holds the first centres, those of the known classes first; if they are fewer
        than `n_clusters`, the others are drawn.
    n_init : int, default=10
        Number of restarts; the one with the lowest inertia is kept.
    max_iter : int, default=200
        Largest number of iterations of a restart.
    tol : float, default=1e-4
        A restart ends when the squared shift of all centres is at most `tol` times the mean variance of the features.
    random_state : int, RandomState or None, default=0
        Seed of the centres.
    device : str, default="auto"
        Device that computes. "auto": a GPU if there is one, otherwise the CPU.

    Attributes
    ----------
    classes_ : ndarray of shape (n_clusters,)
        Names of the clusters: the known classes, then the new clusters (numbers after the largest known one, or names
        new-01, new-02, ... by decreasing size if the labels are names).
    labels_ : ndarray of shape (n_samples,)
        The given label of each labelled sample, and one of `classes_` for the others.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Cluster centres, known classes first.
    inertia_ : float
        Sum of squared distances of all samples to their centres.
    n_iter_ : int
        Number of iterations of the best restart.

    Examples
    --------
    >>> X = [[0.0], [1.0], [10.0], [11.0]]
    >>> SemiSupervisedKMeans(2, device="cpu").fit_predict(X, ["", "", "owl", None]).tolist()
    ['new-01', 'new-01', 'owl', 'owl']
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "auto",
        n_init: int = 10,
        max_iter: int = 200,
        tol: float = 1e-4,
        random_state: int | np.random.RandomState | None = 0,
        device: str = "auto",
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.device = device

    def fit(self, X: Any, y: Any = None) -> SemiSupervisedKMeans:
        """Cluster the samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features; also a memory map.
        y : array-like of shape (n_samples,), optional
            Classes as integers or names; -1, None, NaN or "" for unlabelled. Default: nothing is labelled.

        Returns
        -------
        SemiSupervisedKMeans
            The fitted estimator.

        Raises
        ------
        DataError
            For features or labels that cannot be used.
        ConfigError
            For invalid settings.
        """
        features = self._features(X, reset=True)
        y = [None] * len(features) if y is None else y if isinstance(y, list | tuple) else np.asarray(y)
        given = encode_labels(y)
        if len(given.indices) != len(features):
            raise DataError(
                f"There are {len(features)} samples but {len(given.indices)} labels; expected one label per sample.",
                code="labels-length",
                n_samples=len(features),
                n_labels=len(given.indices),
            )
        named = isinstance(self.init, str)
        if named and self.init not in ("auto", "greedy", "k-means++"):
            raise ConfigError(
                f"`init` must be 'auto', 'k-means++', 'greedy' or an array of centres; got '{self.init}'.",
                code="unknown-init",
                init=self.init,
            )
        found = k_means(
            features,
            self.n_clusters,
            labels=given.indices,
            n_known=len(given.class_names),
            n_init=self.n_init,
            max_iter=self.max_iter,
            tol=self.tol,
            greedy={"greedy": True, "k-means++": False}.get(self.init) if named else None,
            init=None if named else np.asarray(self.init),
            seed=_seed(self.random_state),
            device=self.device,
        )
        clusters = found.labels.cpu().numpy()
        self.classes_ = _classes(given, clusters, self.n_clusters, y)
        self.labels_: NDArray[Any] = self.classes_[clusters]
        self.cluster_centers_: NDArray[Any] = found.centers.cpu().numpy()
        self.inertia_, self.n_iter_ = found.inertia, found.n_iter
        return self

    def fit_predict(self, X: Any, y: Any = None, **_: Any) -> NDArray[Any]:
        """Cluster the samples and return `labels_`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,), optional
            Labels, as for `fit`.
        **_ : Any
            Ignored.

        Returns
        -------
        ndarray of shape (n_samples,)
            The given label of each labelled sample, and one of `classes_` for the others.
        """
        return self.fit(X, y).labels_

    def predict(self, X: Any) -> NDArray[Any]:
        """Assign samples to the nearest centre.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples,)
            One of `classes_` per sample.
        """
        check_is_fitted(self)
        best, _ = assign(self._features(X, reset=False), self.cluster_centers_, device=self.device)
        chosen: NDArray[Any] = self.classes_[best.cpu().numpy()]
        return chosen

    def transform(self, X: Any) -> NDArray[Any]:
        """Compute the distances to all centres.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
            Euclidean distances.
        """
        check_is_fitted(self)
        features = self._features(X, reset=False, look_for_nan=True)
        centers = torch.from_numpy(self.cluster_centers_).double()
        parts = [
            torch.cdist(
                torch.from_numpy(features[i : i + CHUNK_ROWS].astype(np.float64)),
                centers,
                compute_mode="donot_use_mm_for_euclid_dist",
            )
            .numpy()
            .astype(self.cluster_centers_.dtype)
            for i in range(0, len(features), CHUNK_ROWS)
        ]
        return np.concatenate(parts)

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def _features(self, X: Any, *, reset: bool, look_for_nan: bool = False) -> NDArray[Any]:
        """Validated features (n, d), not copied if they are floats; `k_means` and `assign` check for NaN themselves."""
        features: NDArray[Any] = validate_data(
            self, X, reset=reset, dtype=[np.float64, np.float32, np.float16], ensure_all_finite=look_for_nan
        )
        return features


def _seed(random_state: int | np.random.RandomState | None) -> int:
    """A seed for torch from any kind of random state."""
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    rng = np.random.default_rng() if random_state is None else random_state
    return int(rng.integers(2**31) if isinstance(rng, np.random.Generator) else rng.randint(2**31))


def _classes(given: Labels, clusters: NDArray[np.int64], n_clusters: int, y: Any) -> NDArray[Any]:
    """Names (K,) of the clusters: numbers if the labels were numbers, otherwise strings."""
    known = given.class_names
    if not any(isinstance(value, str) and value.strip() for value in y):
        numbers = [int(name) for name in known]
        first = max(numbers, default=-1) + 1
        return np.array(numbers + list(range(first, first + n_clusters - len(known))))
    sizes = np.bincount(clusters, minlength=n_clusters)[len(known) :]
    width = max(2, len(str(len(sizes))))
    taken = set(known)
    free = [name for i in range(1, n_clusters + 1) if (name := f"new-{i:0{width}d}") not in taken][: len(sizes)]
    names = np.empty(n_clusters, dtype=object)
    names[: len(known)] = known
    names[len(known) + np.argsort(-sizes, kind="stable")] = free
    return names.astype(str)
