"""Does a method lose accuracy in its head or in its features?

    python benchmarks/studies/head_or_features.py BENCH/runs DATA

For each finished run of a bench folder: the accuracy of its head, of k-means on its final features, and of a weighted 10-NN
classifier on these features (labelled images vote for unlabelled images of known classes), the number of categories in use,
and the mean confidence. `--frozen 112 4` (image size and views) first prints what RS+ and ORCA can rely on before training:
how many same-class pairs rank statistics find, and how often the nearest neighbour in a batch has the same class. Prints
Markdown.
"""

from __future__ import annotations

import argparse
import csv
import json
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from newkind.clustering.kmeans import k_means
from newkind.config import BackboneConfig
from newkind.data import open_data
from newkind.data.sampling import epoch_batches
from newkind.evaluation import accuracy
from newkind.losses.partners import nearest_partners
from newkind.losses.rank_statistics import same_dimensions, top_dimensions
from newkind.pipeline.estimate_n_categories import backbone_features


def neighbours_vote(z: Tensor, labels: NDArray[np.int64], wanted: NDArray[np.bool_], *, k: int = 10) -> Tensor:
    """Classes (m,) by weighted vote of the k nearest labelled images; z (n, d) of unit length, wanted (n,)."""
    known = torch.from_numpy(labels[labels >= 0])
    top = (z[wanted] @ z[labels >= 0].T).topk(min(k, len(known)), dim=1)
    votes = torch.zeros(len(top.values), int(known.max()) + 1)
    votes.scatter_add_(1, known[top.indices], (top.values / 0.07).exp())
    return votes.argmax(dim=1)


def table_row(folder: Path, labels: NDArray[np.int64], truth: NDArray[np.int64], is_old: NDArray[np.bool_]) -> str:
    """Row of a finished run; labels, truth and is_old of shape (n,)."""
    result = json.loads((folder / "result.json").read_text())
    z = F.normalize(torch.from_numpy(np.load(folder / "features.npy")).float(), dim=1)
    with open(folder / "assignments.csv", newline="") as file:
        confidence = np.array([float(row["confidence"]) for row in csv.DictReader(file)])
    free = labels < 0
    found = k_means(z, int(truth.max()) + 1, n_init=3, max_iter=100, seed=result["seed"]).labels.numpy()
    again = accuracy(truth[free], found[free], is_old[free])
    old = free & is_old
    knn = float((neighbours_vote(z, labels, old).numpy() == truth[old]).mean())
    head = result["accuracy"]
    cells = [
        result["method"],
        result["seed"],
        *(f"{100 * head[kind]:.1f}" for kind in ("all", "old", "new")),
        *(f"{100 * getattr(again, kind):.1f}" for kind in ("all", "old", "new")),
        f"{100 * knn:.1f}",
        f"{result['n_active_clusters']} of {result['n_categories']}",
        f"{confidence[free].mean():.2f}",
    ]
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def pairs(z: Tensor, labels: NDArray[np.int64], truth: NDArray[np.int64]) -> None:
    """Print how well rank statistics and nearest neighbours find pairs in frozen features z (n, d)."""
    t, free = torch.from_numpy(truth), torch.from_numpy(labels < 0)
    found = same_dimensions(top_dimensions(z[free], top_k=5)).fill_diagonal_(False)
    same = (t[free][:, None] == t[free][None]).fill_diagonal_(False)
    right = int((found & same).sum())
    print(
        f"Rank statistics find {right:,} of {int(same.sum()):,} same-class pairs, precision {right / max(int(found.sum()), 1):.3f}."
    )
    hits, there, size = [], [], min(128, len(labels))
    for batch in epoch_batches(labels, batch_size=size, seed=0, epoch=0):
        own, is_free = t[batch], free[batch]
        alike = (own[:, None] == own[None]).fill_diagonal_(False)
        there.append(float(alike.any(dim=1)[is_free].float().mean()))
        hits.append(float((own[nearest_partners(F.normalize(z[batch], dim=1))] == own)[is_free].float().mean()))
    print(
        f"In a batch of {size}, a share of {np.mean(there):.3f} of the unlabelled images have another image of their class; "
        f"for {np.mean(hits):.3f} it is the nearest neighbour.\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path)
    parser.add_argument("data")
    parser.add_argument("--frozen", nargs=2, type=int, metavar=("SIZE", "VIEWS"))
    options = parser.parse_args()
    collection = open_data(options.data)
    assert collection.truth is not None
    labels, truth = collection.catalog.labels.astype(np.int64), collection.truth.labels.astype(np.int64)
    if options.frozen:
        config = BackboneConfig(image_size=options.frozen[0], views=options.frozen[1])
        pairs(backbone_features(collection, config).features, labels, truth)
    print(
        "| Method | Seed | All | Old | New | k-means on its features: All | Old | New | 10-NN | In use | Confidence |"
    )
    print("| :--- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for folder in sorted(options.runs.iterdir()):
        if (folder / "result.json").exists():
            print(table_row(folder, labels, truth, collection.truth.is_old), flush=True)


if __name__ == "__main__":
    main()
