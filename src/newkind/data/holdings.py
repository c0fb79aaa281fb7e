"""Which process can read which image: all of them, or those on the disk of its machine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Holdings"]


@dataclass(frozen=True, eq=False)
class Holdings:
    """The disk on which each image is read, and the disk of each process.

    A folder that several machines share is one disk. So are disks that have all images each.

    Parameters
    ----------
    of_image : ndarray of int64, shape (N,)
        Number of the disk of each image; -1 for an image that cannot be used.
    of_process : ndarray of int64, shape (W,)
        Number of the disk of each process.
    """

    of_image: NDArray[np.int64]
    of_process: NDArray[np.int64]

    @classmethod
    def everywhere(cls, n_images: int, n_processes: int) -> Holdings:
        """Every process can read all of `n_images` images."""
        return cls(np.zeros(n_images, dtype=np.int64), np.zeros(n_processes, dtype=np.int64))

    @classmethod
    def of_disks(cls, held: NDArray[np.bool_], of_process: NDArray[np.int64]) -> Holdings:
        """From the images that are on each disk.

        Parameters
        ----------
        held : ndarray of bool, shape (D, N)
            Whether image i is on disk d.
        of_process : ndarray of int64, shape (W,)
            Number of the disk of each process.

        Returns
        -------
        Holdings
            An image on several disks belongs to one of them, and every disk gets about as many of these.
        """
        if (held == held[0]).all():
            return cls(np.where(held[0], 0, -1), np.zeros_like(of_process))
        copies = held.sum(axis=0)  # (N,)
        turn = np.arange(held.shape[1]) % np.maximum(copies, 1)
        return cls(np.where(copies > 0, (held.cumsum(axis=0) > turn).argmax(axis=0), -1), of_process)

    @property
    def usable(self) -> NDArray[np.bool_]:
        """Whether each image is on a disk, shape (N,)."""
        return self.of_image >= 0

    def only(self, images: NDArray[np.int64]) -> Holdings:
        """Holdings of some images (n,), in their order."""
        return Holdings(self.of_image[images], self.of_process)

    def divided(self, images: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Divide images among the processes.

        Parameters
        ----------
        images : ndarray of int64, shape (n,)
            Numbers of images that can be used.

        Returns
        -------
        list of ndarray of int64
            Positions in `images` that each process reads. Every position occurs once.
        """
        shares: list[NDArray[np.int64]] = [np.zeros(0, np.int64)] * len(self.of_process)
        for disk in np.unique(self.of_process):
            processes = np.flatnonzero(self.of_process == disk)
            held = np.flatnonzero(self.of_image[images] == disk)
            for process, share in zip(processes, np.array_split(held, len(processes)), strict=True):
                shares[process] = share
        return shares
