"""The scikit-learn face: `SemiSupervisedKMeans(n_clusters).fit(X, y)`, with y = -1, None, NaN or "" for unlabelled."""

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
    """k-means in which labelled samples stay in their class; without labels, k-means.

    After `fit`: `labels_` (N,), the given label or one of `classes_` (K,): the known classes, then the new clusters
    (numbers after the largest known one, or names new-01, ... by size); `cluster_centers_` (K, d), `inertia_`, `n_iter_`.

    init: "k-means++", "greedy" (several candidates for each centre), "auto" (greedy if nothing is labelled), or centres
    (K0, d) of which the first are those of the known classes; with fewer than K the rest is drawn.
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "auto",
        n_init: int = 10,
        max_iter: int = 200,
        tol: float = 1e-4,
        size_cap: float | None = None,
        random_state: int | None = 0,
        device: str = "auto",
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.size_cap = size_cap
        self.random_state = random_state
        self.device = device

    def fit(self, X: Any, y: Any = None) -> SemiSupervisedKMeans:
        """X: (N, d), an array or a memory map; y: (N,), -1, None, NaN or "" for unlabelled; None if nothing is labelled."""
        features = self._features(X, reset=True)
        y = [None] * len(features) if y is None else y if isinstance(y, list | tuple) else np.asarray(y)
        given = encode_labels(y)
        if len(given.indices) != len(features):
            raise DataError(f"{len(features)} samples but {len(given.indices)} labels; expected one label a sample.")
        named = isinstance(self.init, str)
        if named and self.init not in ("auto", "greedy", "k-means++"):
            raise ConfigError(f"init is 'auto', 'k-means++', 'greedy' or an array of centres; got '{self.init}'.")
        found = k_means(
            features,
            self.n_clusters,
            labels=given.indices,
            n_known=len(given.class_names),
            n_init=self.n_init,
            max_iter=self.max_iter,
            tol=self.tol,
            greedy={"greedy": True, "k-means++": False}.get(self.init) if named else None,
            size_cap=self.size_cap,
            init=None if named else np.asarray(self.init),
            seed=_seed(self.random_state),
            device=self._device(),
        )
        clusters = found.labels.cpu().numpy()
        self.classes_ = _classes(given, clusters, self.n_clusters, y)
        self.labels_: NDArray[Any] = self.classes_[clusters]
        self.cluster_centers_: NDArray[Any] = found.centers.cpu().numpy()
        self.inertia_, self.n_iter_ = found.inertia, found.n_iter
        return self

    def fit_predict(self, X: Any, y: Any = None, **_: Any) -> NDArray[Any]:
        """The cluster of every sample; a labelled one's is its label."""
        return self.fit(X, y).labels_

    def predict(self, X: Any) -> NDArray[Any]:
        """(n,): the one of `classes_` whose centre is nearest."""
        check_is_fitted(self)
        best, _ = assign(self._features(X, reset=False), self.cluster_centers_, device=self._device())
        chosen: NDArray[Any] = self.classes_[best.cpu().numpy()]
        return chosen

    def transform(self, X: Any) -> NDArray[Any]:
        """(n, K): the distances to all centres."""
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
        """(n, d), not copied if it is an array of floats. k_means and assign look for NaN themselves."""
        features: NDArray[Any] = validate_data(
            self, X, reset=reset, dtype=[np.float64, np.float32, np.float16], ensure_all_finite=look_for_nan
        )
        return features

    def _device(self) -> str:
        if self.device != "auto":
            return self.device
        return "cuda" if torch.cuda.is_available() else "cpu"


def _seed(random_state: int | np.random.RandomState | None) -> int:
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    rng = np.random.default_rng() if random_state is None else random_state
    return int(rng.integers(2**31) if isinstance(rng, np.random.Generator) else rng.randint(2**31))


def _classes(given: Labels, clusters: NDArray[np.int64], n_clusters: int, y: Any) -> NDArray[Any]:
    """(K,): what each cluster is called, numbers if the labels were numbers, names otherwise."""
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
