"""The frame of the method `modern`: a linear map of the features after which labelled classes are round.

Features of today's backbones contain far more than the category of an image (pose, background, light). Labels show in
which directions images of one class differ. The frame shrinks these directions, for new classes as well as known ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from newkind.clustering.known_sizes import estimate_known_sizes
from newkind.clustering.membership import UnitRows
from newkind.clustering.mixture import Mixture, TargetSizes, fit_mixture, refine_mixture, target_sizes
from newkind.clustering.reclaim import reclaim_known
from newkind.clustering.sampling import most_rows, sample_rows
from newkind.clustering.whitening import within_class_whitening
from newkind.methods.method import AllImages, MethodConfig
from newkind.setting import setting

__all__ = ["Frame", "FrameConfig", "find_prototypes", "place_images", "refit_prototypes", "settle_prototypes"]

MOST_CELLS = 120_000_000
"""Memberships (images times categories) of a mixture. With more, it is fitted to a sample of the images; the restarts together have
no more than so many either."""
MANY_RESTARTS_CELLS, USUAL_RESTARTS = 12_000_000, 5
"""Memberships of all restarts together, up to which there are more than so many restarts. With 20 instead of 5, the most likely of 60
restarts is missed in 8 % instead of 24 % of the problems (docs/modern.md)."""
SAMPLE_STEPS, LAST_STEPS = 30, 3
"""Largest number of iterations of a mixture with a sample of the images, and with all of them afterwards."""
SEEDS = 2
"""Unlabelled images per category that a sample has at least: new categories are seeded among them."""
ROWS, PART = 131_072, 16_384
"""Largest number of features that are framed at once, and how many of more are framed at a time."""
REFIT_BALANCE = 0.5
"""How strongly a refit keeps categories at their present sizes. From 0 to 2 accuracy differs by at most 0.7 points, and 8 loses up to 1.5
(benchmarks/results/refit_sizes.md)."""


@dataclass(frozen=True, kw_only=True)
class FrameConfig(MethodConfig):
    """Settings of the frame and of the mixture that finds prototypes in it.

    Parameters
    ----------
    frame_shrinkage : float, default=0.3
        Shrinkage of the covariance within labelled classes: near 0 trusts the labelled images, 1 leaves features as they are.
    mixture_temperature : float, default=0.05
        Temperature of the memberships.
    mixture_balance : float or None, default=None
        How strongly new categories are kept at one size; 0 for not at all, None for as strongly as the sizes of the known
        classes suggest.
    mixture_restarts : int, default=20
        Largest number of restarts of the mixture, each from another k-means. Fewer are used if images times categories are many.
    mixture_steps : int, default=60
        Maximum number of iterations of the mixture.
    """

    frame_shrinkage: float = setting(0.3, above=0, at_most=1)
    mixture_temperature: float = setting(0.05, above=0)
    mixture_balance: float | None = setting(None, at_least=0)
    mixture_restarts: int = setting(20, at_least=1, at_most=1000)
    mixture_steps: int = setting(60, at_least=0, at_most=10**5)


class Frame(nn.Module):
    """z = (x - mean) W, of unit length. It is computed from labels, not trained.

    Parameters
    ----------
    dim : int
        Dimension of the features.
    """

    weight: Tensor
    bias: Tensor

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.register_buffer("weight", torch.eye(dim))
        self.register_buffer("bias", torch.zeros(dim))

    def forward(self, features: Tensor) -> Tensor:
        """(M, d) -> (M, d), L2-normalised."""
        return F.normalize(features.float() @ self.weight + self.bias, dim=-1)

    def fit(self, features: Tensor, labels: Tensor, *, shrinkage: float) -> Tensor:
        """Compute the frame.

        Parameters
        ----------
        features : Tensor of shape (n, d)
            Features of all images.
        labels : Tensor of shape (n,)
            Class indices, -1 for unlabelled.
        shrinkage : float
            As `FrameConfig.frame_shrinkage`.

        Returns
        -------
        Tensor of shape (n, d)
            The features in the frame.
        """
        self.solve(features, labels, shrinkage=shrinkage)
        rows = FramedRows(self, features)
        if len(features) <= ROWS:
            return rows[:]
        z = torch.empty(features.shape, device=self.weight.device)
        for start in range(0, len(features), PART):
            z[start : start + PART] = rows[start : start + PART]
        return z

    def solve(self, features: Tensor, labels: Tensor, *, shrinkage: float) -> None:
        """Compute the frame as `fit` does, without the features in it."""
        known = labels >= 0
        matrix = within_class_whitening(features[known].cpu(), labels[known].cpu().numpy(), shrinkage=shrinkage)[1]
        self.weight.copy_(torch.from_numpy(matrix))
        self.bias.copy_(-_mean(features) @ torch.from_numpy(matrix))


class FramedRows:
    """Features (n, d) in a frame, computed when they are read: a million of them would take as much memory once more.

    Parameters
    ----------
    frame : Frame
        The frame.
    features : Tensor of shape (n, d)
        The features.
    """

    def __init__(self, frame: Frame, features: Tensor) -> None:
        self.frame, self.features, self.shape = frame, features, features.shape

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, index: slice | Tensor) -> Tensor:
        """Rows (b, d) of unit length."""
        place = index if isinstance(index, slice) else index.to(self.features.device)
        return self.frame(self.features[place].to(self.frame.weight.device))  # type: ignore[no-any-return]


def _mean(features: Tensor) -> Tensor:
    """Mean (d,) of features (n, d) in float64, on the CPU."""
    if len(features) <= ROWS:
        return features.double().mean(dim=0).cpu()
    total = sum(part.sum(dim=0, dtype=torch.float64) for part in torch.split(features, PART))
    return torch.as_tensor(total).cpu() / len(features)


def find_prototypes(
    frame: Frame, features: Tensor, images: AllImages, config: FrameConfig, n_categories: int
) -> Mixture:
    """Fit the frame, and a mixture of `n_categories` in it, to features (n, d) and the labels of all images.

    The mixture of very many images is fitted to a sample of them, and then takes a few steps with all.
    """
    given, most = images.labels.cpu().numpy(), most_rows(n_categories, MOST_CELLS)
    rows = sample_rows(given, most, seed=images.seed, least_free=SEEDS * n_categories)
    if rows is None:
        z = frame.fit(features, images.labels, shrinkage=config.frame_shrinkage)
        sizes = _sizes(features, images.labels, images, config, n_categories)
        labels = images.labels.to(z.device)
        return _reclaim(z, _fit(z, labels, sizes, config, images.seed), labels, images, config)
    frame.solve(features, images.labels, shrinkage=config.frame_shrinkage)
    framed, some = FramedRows(frame, features), torch.from_numpy(rows)
    labels = images.labels.to(frame.weight.device)
    sizes = _sizes(features[some], images.labels[some], images, config, n_categories)
    fewer = replace(config, mixture_steps=min(SAMPLE_STEPS, config.mixture_steps))
    first = _fit(framed[some], labels[some.to(labels.device)], sizes, fewer, images.seed)
    found = refine_mixture(
        framed,
        first,
        labels=labels,
        sizes=sizes.scaled(images.labels, len(rows)),
        temperature=config.mixture_temperature,
        n_iter=min(LAST_STEPS, config.mixture_steps),
    )
    return _reclaim(framed, found, labels, images, config)


def _fit(z: Tensor, labels: Tensor, sizes: TargetSizes, config: FrameConfig, seed: int) -> Mixture:
    """Mixture of framed features (n, d) with labels (n,)."""
    return fit_mixture(
        z,
        labels=labels,
        sizes=sizes,
        temperature=config.mixture_temperature,
        n_iter=config.mixture_steps,
        n_init=_restarts(config, len(z) * len(sizes.target)),
        seed=seed,
    )


def _restarts(config: FrameConfig, n_cells: int) -> int:
    """Number of restarts of a mixture with so many memberships: fewer if there are many."""
    many, usual = MANY_RESTARTS_CELLS // max(n_cells, 1), min(MOST_CELLS // max(n_cells, 1), USUAL_RESTARTS)
    return min(config.mixture_restarts, max(many, usual, 1))


def settle_prototypes(frame: Frame, features: Tensor, images: AllImages, config: FrameConfig, *, p: Tensor) -> Mixture:
    """Fit the frame again, and the mixture from the memberships p (n, K) that the network predicts."""
    sizes = _sizes(features, images.labels, images, config, p.shape[1])
    labels = images.labels.to(p.device)
    known = labels >= 0
    p = p.clone()
    p[known] = F.one_hot(labels[known], p.shape[1]).to(p)
    z = frame.fit(features, images.labels, shrinkage=config.frame_shrinkage)
    found = refine_mixture(
        z,
        p.T @ z,
        labels=labels,
        sizes=sizes,
        temperature=config.mixture_temperature,
        n_iter=config.mixture_steps,
    )
    return _reclaim(z, found, labels, images, config)


def _reclaim(z: UnitRows, found: Mixture, labels: Tensor, images: AllImages, config: FrameConfig) -> Mixture:
    """The mixture of rows (n, d) with labels (n,) after known classes reclaimed images from new categories."""
    return reclaim_known(z, found, labels=labels, n_known=images.n_known, temperature=config.mixture_temperature)


def refit_prototypes(
    frame: Frame, features: Tensor, labels: Tensor, prototype: Tensor, config: FrameConfig, *, forbidden: Tensor
) -> Mixture:
    """Fit the frame and the mixture again, from the present prototypes, after a person labelled images.

    Sizes are kept near the present ones. They are not estimated: a person does not label in proportion, and
    a category whose images are all labelled has no others. With estimated sizes, the by-name accuracy of images that
    nobody touched fell from 0.87 to 0.70 after 50 random labels in photographs of groceries, instead of rising to 0.88.

    Parameters
    ----------
    frame : Frame
        The frame; fitted in place.
    features : Tensor of shape (n, d)
        Features of all images.
    labels : Tensor of int64, shape (n,)
        Category of labelled images, -1 for others.
    prototype : Tensor of int64, shape (n,)
        Present prototype of each image, -1 for none. A category may have several, and every one has an image. A labelled
        image stays with its prototype.
    config : FrameConfig
        Settings.
    forbidden : Tensor of int64, shape (n_pairs, 2)
        Pairs of an image and a prototype that it does not belong to.

    Returns
    -------
    Mixture
    """
    z = frame.fit(features, labels, shrinkage=config.frame_shrinkage)
    placed = prototype >= 0
    n = torch.bincount(prototype[placed]).to(z)  # (K,)
    start = z.new_zeros(len(n), z.shape[1]).index_add_(0, prototype[placed], z[placed])
    sizes = TargetSizes(n, torch.full_like(n, REFIT_BALANCE), np.zeros(0))
    return refine_mixture(
        z,
        start,
        labels=torch.where(labels >= 0, prototype, -1),
        sizes=sizes,
        temperature=config.mixture_temperature,
        n_iter=config.mixture_steps,
        forbidden=forbidden,
    )


def place_images(
    features: Tensor, labels: Tensor, category: Tensor, config: FrameConfig, *, n_categories: int, seed: int
) -> Tensor:
    """Category of each image, when images are added to categories that exist, and new categories may open for them.

    Images that have a category keep it. The others belong to the nearest direction of a mixture in which those stay where
    they are.

    Parameters
    ----------
    features : Tensor of shape (n, d)
        Features of all images.
    labels : Tensor of int64, shape (n,)
        Category of labelled images, -1 for others; the frame is fitted to them.
    category : Tensor of int64, shape (n,)
        Category of the images that have one, -1 for others. Every category has an image.
    config : FrameConfig
        Settings.
    n_categories : int
        Number of categories with those that open, which are the last ones.
    seed : int
        Seed of those that open.

    Returns
    -------
    Tensor of int64, shape (n,)
    """
    free = category < 0
    if not free.any():
        return category
    frame = Frame(features.shape[1])
    z = frame.fit(features, labels, shrinkage=config.frame_shrinkage)
    known = estimate_known_sizes(
        features,
        category.numpy(),
        n_known=int(category.max()) + 1,
        n_categories=n_categories,
        shrinkage=config.frame_shrinkage,
        seed=seed,
    )
    found = fit_mixture(
        z,
        labels=category,
        sizes=target_sizes(known, n_categories, int(free.sum()), balance=config.mixture_balance),
        temperature=config.mixture_temperature,
        n_iter=config.mixture_steps,
        n_init=_restarts(config, len(z) * n_categories),
        seed=seed,
    )
    nearest = [(part @ found.directions.T).argmax(dim=1) for part in torch.split(z, ROWS)]
    return torch.where(free, torch.cat(nearest), category)


def _sizes(features: Tensor, given: Tensor, images: AllImages, config: FrameConfig, n_categories: int) -> TargetSizes:
    """Target sizes of all categories, estimated from features (n, d) and labels (n,) of all or some images."""
    labels = given.cpu().numpy()
    known = estimate_known_sizes(
        features.cpu(),
        labels,
        n_known=images.n_known,
        n_categories=n_categories,
        shrinkage=config.frame_shrinkage,
        seed=images.seed,
    )
    return target_sizes(known, n_categories, int((labels < 0).sum()), balance=config.mixture_balance)
