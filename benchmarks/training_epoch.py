"""Training epoch on cached tokens, compared with the same epoch with the plain trunk and the full last block.

Both train the projector and the prototypes with all losses of SimGCD, 128 images x 2 views per step. Ours reads tokens
from a store on disk that was filled with random numbers. The plain version has its images decoded in memory, so the
decoding that it would need for every view is not counted. Its epochs are extrapolated from one step, ours from several.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from measure import best_seconds
from newkind.backbone.allocator import keep_large_blocks
from newkind.backbone.record_layout import RecordLayout
from newkind.backbone.token_cache import StoredViews, TokenCache
from newkind.backbone.token_store import TokenStore
from newkind.backbone.tokens import Tokens
from newkind.backbone.vit import TunedBlocks, build_vit, split
from newkind.data.holdings import Holdings
from newkind.data.views import random_views
from newkind.methods.method import Batch
from newkind.methods.simgcd import SimGCD, simgcd_recipe
from newkind.training.network import Network
from newkind.training.optimizer import build_sgd

MODELS = {"ViT-S/14": ("vit_small_patch14_dinov2.lvd142m", 60), "ViT-B/16": ("vit_base_patch16_224.dino", 100)}
B, V, EPOCHS, K = 128, 8, 200, 200


def batch() -> Batch:
    """A batch of B images, half of them labelled."""
    return Batch(labels=torch.arange(B) % 40 - 20, n_views=2, epoch=0, n_epochs=EPOCHS)


def network_of(tuned: TunedBlocks) -> tuple[Network, torch.optim.SGD]:
    """SimGCD on tuned blocks, and its optimiser."""
    network = Network(tuned, SimGCD(tuned.dim, K, simgcd_recipe("release")))
    return network, build_sgd([(network, 1.0)], learning_rate=1e-4, momentum=0.9, weight_decay=5e-5)


def plain_step(model: Any) -> float:
    """Seconds of the usual step: all frozen blocks, the last block on every token, the losses."""
    blocks = list(model.blocks)
    head = SimGCD(model.embed_dim, K, simgcd_recipe("release"))
    optimizer = build_sgd([(blocks[-1], 1.0), (head, 1.0)], learning_rate=1e-4, momentum=0.9, weight_decay=5e-5)
    images = torch.randn(2 * B, 3, 224, 224)

    def step() -> None:
        with torch.no_grad():
            x = model.norm_pre(model._pos_embed(model.patch_embed(images)))
            for block in blocks[:-1]:
                x = block(x)
        features = model.norm(blocks[-1](x))[:, 0]
        optimizer.zero_grad()
        head.loss_terms(features, batch()).total().backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    return best_seconds(step, 1, warm_up=False)


def fill_store(folder: Path, n_tokens: int, dim: int, n_images: int) -> TokenCache:
    """Store of random records; the time to read them does not depend on their content."""
    layout = RecordLayout(n_views=V, n_tokens=n_tokens, dim=dim)
    store = TokenStore(folder, layout, about={})
    x = torch.randn(V + 1, n_tokens, dim)
    tokens = Tokens(nn.functional.layer_norm(x, (dim,)), x[:, 0])
    digests = [i.to_bytes(16, "little") for i in range(n_images)]
    for digest in digests:
        store.append([digest], tokens)
    stored = StoredViews(store, np.arange(n_images), (0, *random_views(V)))
    return TokenCache([stored], digests, (), Holdings.everywhere(n_images, 1))


def cached_steps(cache: TokenCache, network: Network, optimizer: torch.optim.SGD, steps: int) -> tuple[float, float]:
    """Seconds per step with reading ahead, and seconds to read a batch without computation."""
    rng = np.random.default_rng(0)
    drawn = [rng.integers(0, len(cache.slots), B) for _ in range(steps + 1)]
    start = 0.0
    for i, tokens in enumerate(cache.training_batches(iter(drawn), n_views=2, seed=(0, 0))):
        if i == 1:  # the first step warms up
            start = time.perf_counter()
        optimizer.zero_grad()
        network.method.loss_terms(network.features(tokens), batch()).total().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    seconds = (time.perf_counter() - start) / steps
    start = time.perf_counter()
    n_read = sum(1 for _ in cache.training_batches(iter(drawn[:5]), n_views=2, seed=(0, 0)))
    return seconds, (time.perf_counter() - start) / n_read


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    keep_large_blocks()  # as the trainer does
    print(
        f"step: {B} images x 2 views, fp32, {torch.get_num_threads()} threads; {EPOCHS} epochs with V = {V}, per image:"
    )
    print(
        f"{'':10}{'plain step':>12}{'our step':>10}{'(reading)':>11}{'epoch':>8}{'build/view':>12}{f'{EPOCHS} epochs':>12}"
    )
    results: dict[str, float] = {}
    ok = True
    for title, (name, bar) in list(MODELS.items())[: 1 if quick else 2]:
        torch.manual_seed(0)
        model: Any = build_vit(name, image_size=224)
        plain = plain_step(model)
        trunk, tuned = split(model)
        network, optimizer = network_of(tuned)
        with tempfile.TemporaryDirectory() as folder:
            cache = fill_store(Path(folder), trunk.n_tokens, trunk.dim, 128 if quick else 512)
            step, reading = cached_steps(cache, network, optimizer, 5 if quick else 20)
        views = torch.randn(72, 3, 224, 224)
        view = best_seconds(lambda trunk=trunk, views=views: trunk(views), 1) / len(views)  # type: ignore[misc]
        epoch = plain / step
        whole = EPOCHS * plain / B / ((V + 1) * view + EPOCHS * step / B)
        results |= {f"{title} epoch": round(epoch, 1), f"{title} {EPOCHS} epochs with cache": round(whole, 1)}
        ok &= epoch >= bar and whole >= 30
        print(
            f"{title:10}{plain:>10.1f} s{1000 * step:>7.0f} ms{1000 * reading:>8.0f} ms{epoch:>7.0f}x{1000 * view:>9.0f} ms{whole:>11.0f}x"
        )
    print(
        "Bars: epoch 60x (S) and 100x (B); 200 epochs including the cache build 30x. Plain epochs are extrapolated from one step."
    )
    value = min(value for key, value in results.items() if "with cache" in key)
    print(
        json.dumps(
            {
                "name": "training_epoch",
                "value": value,
                "bar": 30,
                "ok": ok,
                "unit": "times faster over 200 epochs",
                **results,
            }
        )
    )


if __name__ == "__main__":
    main()
