"""The trainer on ready features: it learns, resumes to the bit, and two processes with half a batch equal one."""

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch

from error_codes import raises
from newkind.config import TrainingConfig
from newkind.errors import ConfigError, RunError
from newkind.evaluation import accuracy
from newkind.methods.simgcd import SimGCD, simgcd_recipe
from newkind.training.checkpoint import load_checkpoint
from newkind.training.inference import Layout, predict_features
from newkind.training.network import Network
from newkind.training.optimizer import build_sgd
from small_training import trainer_for

K, DIM = 6, 16


def blobs(n: int = 240) -> tuple[np.ndarray, np.ndarray]:
    """K Gaussian clusters on the sphere."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(K, DIM))
    truth = np.arange(n) % K
    return (centres[truth] + 0.25 * rng.normal(size=(n, DIM))).astype(np.float32), truth


def fresh_network(seed: int = 0) -> Network:
    torch.manual_seed(seed)
    return Network(None, SimGCD(DIM, K, simgcd_recipe("release")))


def run(folder: Path, network: Network, epochs: int, *, stop_after: int | None = None, **settings) -> list:
    values, truth = blobs()
    labels = np.where((truth < 3) & (np.arange(len(truth)) // K % 2 == 0), truth, -1)
    reports = []

    class Stop(Exception):
        pass

    def after_epoch(report) -> None:
        reports.append(report)
        if report.epoch == stop_after:
            raise Stop

    config = TrainingConfig(epochs=epochs, batch_size=48, checkpoint_seconds=0, **settings)
    with suppress(Stop):
        trainer_for(network, values, labels, config, folder).train(after_epoch)
    return reports


def test_it_learns_known_and_new_clusters(tmp_path: Path) -> None:
    network = fresh_network()
    reports = run(tmp_path, network, 40)
    assert reports[-1].losses["total"] < reports[0].losses["total"]
    values, truth = blobs()
    labels = np.full(len(values), -1)
    found = predict_features(
        network,
        torch.from_numpy(values),
        labels=labels,
        layout=Layout.plain(network.method.n_categories, 3),
        device=torch.device("cpu"),
    )
    assert accuracy(truth, found.best, truth < 3).all > 0.7  # chance is 0.2
    known = truth < 3
    assert (found.best[known] == truth[known]).mean() > 0.95  # known classes keep their own numbers
    assert found.novelty[~known].mean() > found.novelty[known].mean() + 0.3
    assert np.all(found.best_probability >= found.second_probability)


def state(network: Network) -> bytes:
    return b"".join(value.numpy().tobytes() for value in network.state_dict().values())


def test_a_resumed_training_is_the_same_to_the_bit(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    whole = fresh_network()
    run(tmp_path / "a", whole, 6)
    run(tmp_path / "b", fresh_network(), 6, stop_after=3)  # before its checkpoint
    resumed = fresh_network(seed=9)  # what it starts from does not matter: the checkpoint has everything
    reports = run(tmp_path / "b", resumed, 6)
    assert [report.epoch for report in reports] == [3, 4, 5, 6]
    assert state(resumed) == state(whole)


def test_a_checkpoint_of_something_else_or_a_damaged_one_is_refused(tmp_path: Path) -> None:
    run(tmp_path, fresh_network(), 1)
    path = tmp_path / "c.safetensors"
    content = path.read_bytes()
    changed = content[:-1] + bytes([content[-1] ^ 1])  # in the values, where safetensors itself checks nothing
    for damaged in (content[:-100], changed):
        path.write_bytes(damaged)
        with raises(RunError, "damaged-checkpoint"):
            load_checkpoint(path)
    path.write_bytes(content)
    found = load_checkpoint(path)
    assert found is not None
    assert found.finished_epochs == 1
    other = trainer_for(
        fresh_network(), np.eye(8, DIM), np.zeros(8, int), TrainingConfig(batch_size=4), tmp_path, fingerprint="other"
    )
    with raises(RunError, "other-run"):
        other.train(lambda _: None)


def test_parameter_groups() -> None:
    network = fresh_network()
    decayed, plain = build_sgd([(network, 1.0)], learning_rate=0.1, momentum=0.9, weight_decay=5e-5).param_groups
    assert decayed["weight_decay"] == 5e-5
    assert plain["weight_decay"] == 0
    assert any(p is network.method.classifier.prototypes for p in decayed["params"])
    assert all(p.ndim == 1 for p in plain["params"])
    assert len(decayed["params"]) + len(plain["params"]) == len(list(network.parameters()))


def test_learning_rate_follows_the_cosine(tmp_path: Path) -> None:
    rates = [report.learning_rate for report in run(tmp_path, fresh_network(), 4)]
    base = 0.1 * 48 / 128  # the joint batch is 48
    expected = [base * (1e-3 + (1 - 1e-3) * (1 + np.cos(np.pi * e / 4)) / 2) for e in range(4)]
    np.testing.assert_allclose(rates, expected)


def test_too_few_images_and_a_loss_that_explodes(tmp_path: Path) -> None:
    few = trainer_for(fresh_network(), np.eye(3, DIM), np.zeros(3, int), TrainingConfig(batch_size=4), tmp_path)
    with raises(ConfigError, "batch-too-large"):
        few.train(lambda _: None)
    with raises(RunError, "loss-diverged"):
        run(tmp_path, fresh_network(), 3, learning_rate=1e6)
    for bad in (
        {"views_per_step": 1},
        {"seed": -1},
        {"evaluate_every": 0},
        {"learning_rate": 0.0},
        {"precision": "fp8"},
    ):
        with pytest.raises(ConfigError):
            TrainingConfig(**bad)


WORKER = """
import sys
from contextlib import suppress
from pathlib import Path
sys.path[:0] = [sys.argv[1], str(Path(sys.argv[1]).parent)]
import torch
torch.set_num_threads(1)
from newkind import distributed
import test_trainer as t
distributed.init_from_environment()
network = t.fresh_network()
world = distributed.world_size()
original = t.TrainingConfig
t.TrainingConfig = lambda **s: original(**(s | {"batch_size": 48 // world}))
t.run(Path(sys.argv[2]), network, 3, global_losses=True)
if distributed.main_process():
    torch.save(network.state_dict(), Path(sys.argv[2]) / "state.pt")
distributed.shutdown()
"""


def test_two_processes_with_half_a_batch_equal_one(tmp_path: Path) -> None:
    here = str(Path(__file__).parent)
    states = []
    for world in (1, 2):
        folder = tmp_path / str(world)
        folder.mkdir()
        script = folder / "worker.py"
        script.write_text(WORKER)
        command = [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--standalone",
            f"--nproc-per-node={world}",
            str(script),
            here,
            str(folder),
        ]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        states.append(torch.load(folder / "state.pt", weights_only=True))
    for name in states[0]:
        torch.testing.assert_close(states[0][name], states[1][name], atol=2e-5, rtol=1e-4)
