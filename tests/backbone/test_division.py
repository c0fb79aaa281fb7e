"""Which process computes which images, from what is on the disks."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from newkind.backbone.cache_plan import CacheKey, CachePlan
from newkind.backbone.disks import Disks
from newkind.backbone.division import Division, divide
from newkind.backbone.record_layout import RecordLayout
from newkind.data import Collection, from_arrays
from newkind.data.views import ViewRecipe

N = 96
"""Images: two known classes of 24, and 48 unlabelled ones; the last two have the same content, and one cannot be read."""


@pytest.fixture(scope="module")
def pixels() -> Collection:
    return from_arrays(np.zeros((N, 4, 4, 3), dtype=np.uint8), [0] * 24 + [1] * 24 + [-1] * 48)


@dataclass(frozen=True, eq=False)
class KnownDisks(Disks):
    """Disks of which this process knows what the others have: masks (D, contents) of each plan, asked for in order."""

    masks: Iterator[np.ndarray] = field(default_factory=lambda: iter(()))

    def gather_masks(self, mask: np.ndarray, *, same: bool = False) -> np.ndarray:
        found = next(self.masks)
        assert np.array_equal(found[self.of_process[self.rank]], mask)
        assert not same
        return found


def plans(stored: np.ndarray) -> list[CachePlan]:
    """Plans of one view each, with the records (plans, contents) of the own disk."""
    digests = [i.to_bytes(16, "little") for i in range(1, N)]
    digests = [*digests, digests[-1]]
    digests[5] = b""
    contents = [i for i in range(N - 1) if i != 5]
    recipe, layout = ViewRecipe(image_size=32), RecordLayout(n_views=0, n_tokens=0, dim=4)
    return [
        CachePlan(
            key=CacheKey.of_feature(view, backbone="x", weights_sha256="y", recipe=recipe, seed=0),
            place="z",
            folder=Path("none"),
            layout=layout,
            digests=digests,
            todo=[i for i, is_there in zip(contents, row, strict=True) if not is_there],
            free_bytes=10**12,
        )
        for view, row in enumerate(stored)
    ]


def divided(pixels: Collection, stored: np.ndarray, of_process: list[int]) -> list[Division]:
    """The division as every process sees it."""
    disks = [KnownDisks(np.array(of_process), rank, iter(stored)) for rank in range(len(of_process))]
    return [divide(pixels, plans(stored[:, of_process[rank]]), disk) for rank, disk in enumerate(disks)]


@pytest.fixture(autouse=True)
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("newkind.backbone.cache_plan.FEATURE_GROUP", 4)


def test_every_content_is_computed_once_in_the_same_groups(pixels: Collection) -> None:
    nothing = np.zeros((1, 2, N - 2), dtype=bool)
    (alone,) = divided(pixels, nothing[:, :1], [0])
    found = divided(pixels, nothing, [0, 0, 1, 1])
    assert sorted(group for each in found for group in each.groups) == alone.groups
    assert np.concatenate(alone.groups).tolist() == [i for i in range(N - 1) if i != 5]
    assert {each.n_images for each in found} == {N - 2}
    assert {len(each.groups) for each in found} == {6}
    for disk in (found[:2], found[2:]):  # half of every class on each disk
        images = np.concatenate([group for each in disk for group in each.groups])
        assert np.abs(np.bincount(pixels.catalog.labels[images] + 1) - [24, 12, 12]).max() <= 4


def test_images_are_completed_where_their_other_views_are(pixels: Collection) -> None:
    rng = np.random.default_rng(0)
    owner = np.repeat(rng.permutation(np.arange(24) % 2), 4)[: N - 2]  # of groups
    stored = np.zeros((2, 2, N - 2), dtype=bool)
    stored[0] = owner == np.arange(2)[:, None]
    found = divided(pixels, stored, [0, 1])
    contents = np.array([i for i in range(N - 1) if i != 5])
    for disk, each in enumerate(found):
        assert np.array_equal(np.concatenate(each.groups), contents[owner == disk])
        assert [len(plan.todo) for plan in each.plans] == [0, N - 2]


def test_a_disk_that_has_the_first_view_of_everything_does_not_do_everything(pixels: Collection) -> None:
    stored = np.zeros((2, 4, N - 2), dtype=bool)
    stored[0, 0] = True
    found = divided(pixels, stored, [0, 1, 2, 3])
    n_groups = [len(each.groups) for each in found]
    assert sum(n_groups) == 24
    assert max(n_groups) <= 9
    assert min(n_groups) >= 4
    again = sum(len(each.groups) for each in found[1:])
    assert len(found[0].plans[0].todo) == pytest.approx(4 * again, abs=4)  # their first view, once more


def test_nothing_is_missing(pixels: Collection) -> None:
    everything = np.ones((3, 2, N - 2), dtype=bool)
    assert [(each.groups, each.n_images) for each in divided(pixels, everything, [0, 1])] == [([], 0)] * 2
