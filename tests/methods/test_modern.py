"""`modern`: the frame, start and settling of prototypes, learning rates, and the number of categories."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from newkind.config import NCategories, TrainingConfig, default_recipe
from newkind.data import from_features
from newkind.effort import Amount
from newkind.errors import ConfigError
from newkind.evaluation import accuracy
from newkind.methods.frame import Frame, FrameConfig, find_prototypes, settle_prototypes
from newkind.methods.method import Batch
from newkind.methods.modern import Modern, ModernConfig
from newkind.methods.registry import build_method, method_config
from newkind.pipeline.choose_n_categories import n_prototypes
from newkind.pipeline.configure import configure
from newkind.pipeline.discover import discover
from newkind.training.network import Network
from small_training import Images, trainer_for

DIM, K, KNOWN = 12, 6, 3


def stretched(n: int = 40, seed: int = 0) -> tuple[torch.Tensor, np.ndarray, np.ndarray]:
    """(features, labels, truth): classes differ in a few directions, images of one class mostly in others, as photographs do."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(K), n)
    centres = np.zeros((K, DIM))
    centres[:, :4] = 1.5 * rng.normal(size=(K, 4))
    spread = np.array([0.25] * 4 + [1.2] * 4 + [0.25] * 4)
    features = 5 + centres[truth] + spread * rng.normal(size=(len(truth), DIM))
    labels = np.where((truth < KNOWN) & (np.arange(len(truth)) % 2 == 0), truth, -1)
    return torch.from_numpy(features).float(), labels, truth


def modern(k: int = K, **settings) -> Modern:
    torch.manual_seed(0)
    method = build_method("modern", DIM, k, method_config("modern", settings=settings))
    assert isinstance(method, Modern)
    return method


def test_in_the_frame_labelled_classes_are_round() -> None:
    x, labels, _ = stretched(400)
    frame = Frame(DIM)
    framed = frame.fit(x, torch.from_numpy(labels), shrinkage=1e-6)
    torch.testing.assert_close(framed.norm(dim=1), torch.ones(len(x)))
    raw = x @ frame.weight + frame.bias
    torch.testing.assert_close(raw.mean(dim=0), torch.zeros(DIM), atol=1e-3, rtol=0)
    rest = torch.cat([raw[labels == c] - raw[labels == c].mean(dim=0) for c in range(KNOWN)])
    covariance = rest.T @ rest / (len(rest) - KNOWN)
    torch.testing.assert_close(covariance, torch.eye(DIM), atol=1e-3, rtol=0)


def test_prototypes_start_at_categories_that_plain_features_hide() -> None:
    x, labels, truth = stretched()
    given = torch.from_numpy(labels)
    config = FrameConfig()
    frame = Frame(DIM)
    found = find_prototypes(frame, x, Images(x, given, KNOWN), config, K)
    best = (frame(x) @ found.directions.T).argmax(dim=1).numpy()
    assert (best[truth < KNOWN] == truth[truth < KNOWN]).mean() > 0.95  # known classes first, in their order
    assert accuracy(truth, best, truth < KNOWN).new > 0.95
    # Settling from the network's own answer stays there.
    p = F.one_hot(torch.from_numpy(best), K).float()
    settled = settle_prototypes(frame, x, Images(x, given, KNOWN), config, p=p)
    assert ((frame(x) @ settled.directions.T).argmax(dim=1).numpy() == best).mean() > 0.98


def test_start_and_settle_are_the_methods_own() -> None:
    x, labels, _ = stretched()
    method, given = modern(), torch.from_numpy(labels)
    images = Images(x, given, KNOWN)
    method.start(images)
    frame = Frame(DIM)
    found = find_prototypes(frame, x, images, method.config, K)
    torch.testing.assert_close(method.logits(x), frame(x) @ found.directions.T)
    p = (method.logits(x) / method.temperature).softmax(dim=1)
    method.settle(images)
    settled = settle_prototypes(frame, x, images, method.config, p=p)
    torch.testing.assert_close(method.logits(x), frame(x) @ settled.directions.T)


def test_its_losses_have_no_projector_and_no_infonce() -> None:
    x, labels, _ = stretched()
    method = modern()
    assert not hasattr(method, "projector")
    assert {name for name, _ in method.named_parameters()} == {"classifier.prototypes"}  # the frame is not trained
    batch = Batch(labels=torch.from_numpy(labels), n_views=2, epoch=0, n_epochs=2)
    terms = method.loss_terms(x.repeat(2, 1).requires_grad_(), batch)
    assert set(terms.parts) == {"supcon", "supervised", "distil", "entropy"}
    assert torch.isfinite(terms.total())


class Tuned(torch.nn.Linear):
    """A block that starts as the identity."""

    def __init__(self) -> None:
        super().__init__(DIM, DIM)
        torch.nn.init.eye_(self.weight)
        torch.nn.init.zeros_(self.bias)

    def forward(self, tokens):  # type: ignore[override]
        return super().forward(tokens.cls)


@pytest.mark.parametrize("name", ["simgcd", "modern"])
def test_block_and_heads_learn_at_their_own_rates(tmp_path: Path, name: str) -> None:
    x, labels, _ = stretched()
    torch.manual_seed(0)
    config = method_config(name, settings={"block_rate": 0.5, "head_rate": 0.25})
    network = Network(Tuned(), build_method(name, DIM, K, config))  # type: ignore[arg-type]
    seen: list[list[tuple[float, float]]] = []
    step = torch.optim.SGD.step

    def watched(self, *args, **more):
        seen.append([(group["lr"], group["rate"]) for group in self.param_groups])
        return step(self, *args, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.optim.SGD, "step", watched)
        training = TrainingConfig(epochs=1, batch_size=128, learning_rate=0.2)
        trainer_for(network, x.numpy(), labels, training, tmp_path).train(lambda _: None)
    rates = {rate: lr for lr, rate in seen[0]}
    assert rates == {0.25: pytest.approx(0.05), 0.5: pytest.approx(0.1)}


def test_settling_starts_from_the_categories_of_the_start(tmp_path: Path) -> None:
    """The block learns and the prototypes do not, so that a training cannot exchange the categories."""
    x, labels, _ = stretched()
    images = Images(x, torch.from_numpy(labels), KNOWN)
    frame = Frame(DIM)
    start = find_prototypes(frame, x, images, FrameConfig(), K).directions
    tuned = Tuned()
    network = Network(tuned, modern(block_rate=1.0))  # type: ignore[arg-type]
    trainer = trainer_for(network, x.numpy(), labels, TrainingConfig(epochs=2, batch_size=64), tmp_path)
    trainer.train(lambda _: None)
    assert (tuned.weight - torch.eye(DIM)).abs().max() > 1e-3
    torch.testing.assert_close(dict(network.method.named_parameters())["classifier.prototypes"].detach(), start)
    with torch.no_grad():
        trained = x @ tuned.weight.T + tuned.bias
        p = (frame(trained) @ start.T / ModernConfig().student_temperature).softmax(dim=1)
        settled = settle_prototypes(frame, trained, Images(trained, images.labels, KNOWN), FrameConfig(), p=p)
        found = trainer.read_out(final=True)
        torch.testing.assert_close(found.features, trained)
        torch.testing.assert_close(network.method.logits(trained), frame(trained) @ settled.directions.T)


def run(out: Path, *, n_categories: int | str | NCategories | None = None, epochs: int = 3):
    x, labels, truth = stretched()
    collection = from_features(x.numpy(), labels.tolist(), truth=truth.tolist())
    amount, training = Amount(epochs=epochs), TrainingConfig(batch_size=64)
    return discover(collection, out, configure(collection, amount=amount, training=training, n_categories=n_categories))


def test_it_finds_what_the_labels_make_visible(tmp_path: Path) -> None:
    outcome = run(tmp_path / "run")
    assert outcome.scores is not None
    assert outcome.scores.all > 0.9
    assert outcome.run.config()["config"]["method_name"] == "modern"


def test_looking_on_the_way_changes_nothing(tmp_path: Path) -> None:
    """An evaluation during training does not change it."""
    x, labels, truth = stretched()
    collection = from_features(x.numpy(), labels.tolist(), truth=truth.tolist())
    states = []
    for every in (1, 4):
        training = TrainingConfig(batch_size=64, evaluate_every=every)
        config = configure(collection, amount=Amount(epochs=4), training=training)
        outcome = discover(collection, tmp_path / str(every), config)
        states.append((outcome.run.folder / "model.safetensors").read_bytes())
    assert states[0] == states[1]


def used(outcome) -> int:
    found = outcome.run.config()["n_categories"]["used"]
    assert found == len(outcome.categories)
    return found


def test_a_given_number_of_categories_is_obeyed(tmp_path: Path) -> None:
    assert used(run(tmp_path / "fewer", n_categories=4)) == 4
    assert used(run(tmp_path / "more", n_categories=12)) == 12


def test_an_estimated_number_is_not_merged_and_has_a_bound(tmp_path: Path, monkeypatch) -> None:
    from newkind.clustering import Estimate
    from newkind.pipeline import choose_n_categories as choosing
    from newkind.training.trainer import Trainer

    estimate = Estimate(n_categories=7, low=5, high=8, n_known=KNOWN, way="pairs", quality=0.9)
    monkeypatch.setattr(choosing, "estimate_n_categories", lambda *_, **__: estimate)
    monkeypatch.setattr(Trainer, "merge", lambda *_: pytest.fail("modern was merged"))
    assert used(run(tmp_path / "auto", n_categories="auto")) == 7
    assert used(run(tmp_path / "bound", n_categories=NCategories("at-most", 5))) == 5
    assert n_prototypes(estimate, NCategories("at-most", 9), spare=True) == 9
    assert n_prototypes(estimate, NCategories("estimated"), spare=True) == estimate.generous()


def test_it_is_the_default_but_for_the_backbones_of_the_paper() -> None:
    assert default_recipe("simgcd", "vit_small_patch14_dinov2.lvd142m") == "modern"
    assert default_recipe("simgcd", "vit_base_patch16_224.dino") == "release"
    assert default_recipe("gcd", "vit_small_patch14_dinov2.lvd142m") == "release"


@pytest.mark.parametrize(
    "settings",
    [
        {"frame_shrinkage": 0.0},
        {"mixture_temperature": 0.0},
        {"mixture_restarts": 0},
        {"block_rate": -1.0},
        {"student_temperature": float("nan")},
    ],
)
def test_settings_out_of_range_are_refused(settings) -> None:
    with pytest.raises(ConfigError) as caught:
        ModernConfig(**settings)
    assert caught.value.facts["setting"] in settings
