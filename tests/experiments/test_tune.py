"""Settings chosen by labelled images alone: the rehearsal, the grid, the runs, the verdict."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import newkind
from newkind import tuning
from newkind.backbone.token_cache import place_of
from newkind.config import BackboneConfig, TrainingConfig, configure
from newkind.data import Collection, Features, from_arrays, from_features, open_data
from newkind.errors import ConfigError, DataError, RunError
from newkind.experiments.holdout import pretend
from newkind.experiments.ranking import Ranking, Tried, rank, write_ranking
from newkind.experiments.tune import TuneConfig, candidates, plan_tuning, read_tries, tune

QUICK = TrainingConfig(epochs=2, batch_size=16)
SECRET = "Nobody-labelled-this"


def clouds(n_known: int = 6, n_each: int = 12) -> Collection:
    """Clouds in 8-d: `n_known` known ones with half of their samples labelled, and two that only the truth knows."""
    rng = np.random.default_rng(0)
    kind = np.repeat(np.arange(n_known + 2), n_each)
    features = (3 * rng.normal(size=(n_known + 2, 8))[kind] + rng.normal(size=(len(kind), 8))).astype(np.float32)
    names = [f"class{i}" for i in range(n_known)] + [SECRET, SECRET + "-either"]
    labels = [names[k] if k < n_known and i % 2 == 0 else "" for i, k in enumerate(kind)]
    return from_features(features, labels, truth=[names[k] for k in kind], origin="clouds")


def silent(_: str) -> None:
    pass


@pytest.mark.parametrize("n_known", [4, 6, 7])
@pytest.mark.parametrize("fold", [0, 1, 2, 5])
def test_a_rehearsal_has_the_labelled_images_and_nothing_else(n_known: int, fold: int) -> None:
    whole = clouds(n_known)
    found = pretend(whole, fold=fold, seed=3)
    given = {
        name: whole.catalog.class_names[label]
        for name, label in zip(whole.catalog.items.names, whole.catalog.labels, strict=True)
        if label >= 0
    }
    truth = found.truth
    assert truth is not None
    assert {
        name: truth.class_names[label] for name, label in zip(found.catalog.items.names, truth.labels, strict=True)
    } == given  # the truth is the given labels, all of them, and no other
    known, new = truth.class_names[: truth.n_old], truth.class_names[truth.n_old :]
    assert found.catalog.class_names == known
    assert sorted(known + new) == sorted(whole.catalog.class_names)
    assert {len(known), len(new)} == {n_known // 2, n_known - n_known // 2}
    labelled = found.catalog.is_labelled
    assert np.array_equal(found.catalog.labels[labelled], truth.labels[labelled])
    assert not labelled[truth.labels >= truth.n_old].any()
    assert found.catalog.counts().tolist() == [3] * len(known)  # of six
    assert SECRET not in repr(truth) + repr(found.catalog.class_names)
    assert isinstance(found.catalog.items, Features)
    assert isinstance(whole.catalog.items, Features)
    assert np.array_equal(found.catalog.items.values, whole.catalog.items.values[whole.catalog.is_labelled])


def test_folds_are_complements_and_then_other_halves() -> None:
    halves = [pretend(clouds(), fold=fold, seed=0).catalog.class_names for fold in range(6)]
    everyone = set(clouds().catalog.class_names)
    for first, second in zip(halves[::2], halves[1::2], strict=True):
        assert set(first) == everyone - set(second)
    assert len(set(halves)) == 6
    assert pretend(clouds(), fold=0, seed=0).catalog.class_names == halves[0]
    assert len({pretend(clouds(), fold=0, seed=seed).catalog.class_names for seed in range(8)}) > 1


def test_a_single_labelled_image_stays_labelled_or_is_new() -> None:
    whole = clouds()
    labels = whole.catalog.labels.copy()
    labels[np.flatnonzero(labels == 2)[1:]] = -1
    whole = replace(whole, catalog=replace(whole.catalog, labels=labels))
    for fold in (0, 1):
        found = pretend(whole, fold=fold, seed=0)
        assert (found.catalog.counts() >= 1).all()
        assert found.truth is not None
        assert (found.truth.labels == found.truth.class_names.index("class2")).sum() == 1


@pytest.mark.parametrize(
    ("keep", "sentence"), [(0, "No image is labelled"), (1, "1 labelled class is too few"), (3, "3 labelled classes")]
)
def test_too_few_classes(keep: int, sentence: str) -> None:
    whole = clouds()
    labels = np.where(whole.catalog.labels < keep, whole.catalog.labels, np.int32(-1))
    with pytest.raises(DataError, match=sentence):
        pretend(replace(whole, catalog=replace(whole.catalog, labels=labels)), fold=0, seed=0)


def test_too_few_images() -> None:
    whole = clouds()
    labels = np.full_like(whole.catalog.labels, -1)
    for label in range(6):
        labels[np.flatnonzero(whole.catalog.labels == label)[: 2 if label < 3 else 1]] = label
    with pytest.raises(DataError, match="Only 3 of the 6 known classes have two labelled images"):
        pretend(replace(whole, catalog=replace(whole.catalog, labels=labels)), fold=0, seed=0)


def test_pictures_come_from_the_same_place(tmp_path: Path, make_image) -> None:  # type: ignore[no-untyped-def]
    """So that the tokens of the whole are found: by place, then by content."""
    for i in range(8):
        make_image(tmp_path / "pile" / f"class{i // 2}" / f"{i}.png", seed=i)
        make_image(tmp_path / "pile" / f"{i}.png", seed=100 + i)
    in_files = open_data(tmp_path / "pile")
    pixels = np.random.default_rng(0).integers(0, 255, (16, 8, 8, 3), dtype=np.uint8)
    labels = [i // 4 if i % 2 else -1 for i in range(16)]
    in_memory = from_arrays(pixels, labels)
    for whole in (in_files, in_memory):
        found = pretend(whole, fold=0, seed=0)
        assert place_of(found) == place_of(whole)
        chosen = np.flatnonzero(whole.catalog.is_labelled)
        assert len(found.catalog) == len(chosen) == 8
        for i, j in enumerate(chosen.tolist()):
            assert found.catalog.items.names[i] == whole.catalog.items.names[j]
            assert found.catalog.items.content(i) == whole.catalog.items.content(j)  # type: ignore[union-attr]
            assert found.catalog.items.open(i).tobytes() == whole.catalog.items.open(j).tobytes()  # type: ignore[union-attr]


def test_the_cache_of_the_whole_is_used(
    tmp_path: Path,
    make_image,
    monkeypatch: pytest.MonkeyPatch,  # type: ignore[no-untyped-def]
) -> None:
    monkeypatch.setenv("NEWKIND_CACHE", str(tmp_path / "cache"))
    for i in range(16):
        make_image(tmp_path / "pile" / f"class{i // 4}" / f"{i}.png", seed=i, size=(40, 40))
        make_image(tmp_path / "pile" / f"{i}.png", seed=100 + i, size=(40, 40))
    (tmp_path / "pile" / "class0" / "broken.png").write_bytes(b"not a picture")
    said: list[str] = []
    trunk = BackboneConfig(name="vit_tiny_patch16_224", random_weights=True, image_size=32, views=2)
    config = TuneConfig(tries={"block_rate": ["0"]}, training=QUICK, trunk=trunk)
    found = tune(open_data(tmp_path / "pile"), tmp_path / "out", config)
    assert found is not None
    assert len(list((tmp_path / "cache" / "tokens").iterdir())) == 1
    assert any("33 images x (2 + 1) views" in line for line in said)  # all of them, not only the labelled ones
    assert found.about["n_images"] == 16  # without the broken one


def test_what_to_try() -> None:
    tries = read_tries(["block-rate=0, 0.01", "mixture_balance=1,4"])
    assert tries == {"block_rate": ("0", "0.01"), "mixture_balance": ("1", "4")}
    assert candidates(tries) == [
        {"block_rate": "0", "mixture_balance": "1"},
        {"block_rate": "0", "mixture_balance": "4"},
        {"block_rate": "0.01", "mixture_balance": "1"},
        {"block_rate": "0.01", "mixture_balance": "4"},
    ]
    for text in ("block_rate", "block_rate=", "block_rate=1,,2", "=1"):
        with pytest.raises(ConfigError, match="name=value,value"):
            read_tries([text])
    with pytest.raises(ConfigError, match="tried twice"):
        read_tries(["block_rate=0", "block_rate=1"])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"tries": {"speed": ["9"]}}, "has no setting 'speed'"),
        ({"tries": {"block_rate": ["much"]}}, "block_rate is a number"),
        ({"tries": {"block_rate": ["-1"]}}, "0 or larger"),
        ({"tries": {"n_categories": ["5"]}}, "n_categories"),
        ({"tries": {"supervision": ["oracle"]}}, "learns from the truth"),
        ({"tries": {"block_rate": ["0.50"]}, "settings": {"block_rate": "1"}}, "both to be tried and set"),
        ({"tries": {"head_rate": ["1"]}, "recipe": "release"}, "nothing to choose from"),
        ({"recipe": "paper"}, "has to be said for SimGCD, recipe paper"),
        ({"method": "kmeans"}, "has to be said for k-means"),
        ({"method": "magic"}, "no method 'magic'"),
        ({"recipe": "magic", "tries": {"block_rate": ["0"]}}, "no recipe 'magic'"),
        ({"n_folds": 1}, "At least 2 folds"),
    ],
)
def test_bad_asks(tmp_path: Path, change: dict, sentence: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(ConfigError, match=sentence):
        tune(clouds(), tmp_path / "out", TuneConfig(training=QUICK, **change))
    assert not (tmp_path / "out").exists()


def test_the_grid_has_each_setting_once_and_the_default() -> None:
    def grid(**change) -> list[tuple[dict[str, str], bool]]:  # type: ignore[no-untyped-def]
        plan = plan_tuning(clouds(), Path("nowhere"), TuneConfig(training=QUICK, **change))
        assert len({cell.run.folder for cell in plan.cells}) == len(plan.cells)
        return [(cell.settings, cell.is_default) for cell in plan.cells if cell.fold == 0]

    release = grid(recipe="release", tries={"head_rate": ["0.5", "1.0", "0.50"]})
    assert release == [({"head_rate": "1"}, True), ({"head_rate": "0.5"}, False)]
    kept = grid(recipe="release", tries={"head_rate": [0.5]}, settings={"block_rate": "0"})
    assert kept == release
    assert all("block_rate" not in settings for settings, _ in grid())  # ready features have no block
    assert {cell.config.method.n_categories for cell in plan_tuning(clouds(), Path("x"), TuneConfig()).cells} == {6}


def test_a_tuning_goes_on_and_runs_nothing_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = TuneConfig(tries={"mixture_balance": ["1", "2"]}, training=QUICK)
    real, ran = tuning.discover, []

    def discover(data: Collection, out: Path, *args, **kwargs):  # type: ignore[no-untyped-def]
        if len(ran) == 4:
            raise KeyboardInterrupt
        ran.append(out)
        return real(data, out, *args, **kwargs)

    monkeypatch.setattr(tuning, "discover", discover)
    with pytest.raises(KeyboardInterrupt):
        tune(clouds(), tmp_path / "out", config)
    assert not (tmp_path / "out" / "tune.json").exists()
    said: list[str] = []
    tune(clouds(), tmp_path / "out", config, dry_run=True)
    assert said[0].startswith("6 runs (3 settings x 2 folds), 4 of them finished, 2 to do, about ")
    assert [line.split()[0] for line in said[1:-1]] == ["finished"] * 4 + ["to"] * 2
    first, ran = ran.copy(), []
    found = tune(clouds(), tmp_path / "out", config)
    assert len(ran) == 2
    assert len({*first, *ran}) == 6 == len(list((tmp_path / "out" / "runs").iterdir()))
    written = (tmp_path / "out" / "tune.json").read_bytes()
    ran = []
    again = tune(clouds(), tmp_path / "out", config)
    assert not ran
    assert again == found
    assert "6 runs (3 settings x 2 folds), all of them finished." in said
    assert (tmp_path / "out" / "tune.json").read_bytes() == written
    # Other conditions are other runs.
    plan = plan_tuning(clouds(), tmp_path / "out", replace(config, training=replace(QUICK, epochs=3)))
    assert len(plan.todo) == 6
    plan = plan_tuning(clouds(n_each=10), tmp_path / "out", config)
    assert len(plan.todo) == 6


def test_the_users_truth_is_never_seen(tmp_path: Path) -> None:
    config = TuneConfig(tries={"mixture_balance": ["1"]}, training=QUICK)
    found = tune(clouds(), tmp_path / "a", config)
    blind = tune(replace(clouds(), truth=None), tmp_path / "b", config)
    assert found is not None
    assert found == blind
    for path in (tmp_path / "a").rglob("*"):
        assert path.is_dir() or SECRET.encode() not in path.read_bytes(), path


def test_a_run_that_fails_is_named_and_the_others_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = tuning.discover

    def discover(data, out, config, **kwargs):  # type: ignore[no-untyped-def]
        if config.method.mixture_balance == 2:
            raise RunError("The loss became nan in epoch 1.")
        return real(data, out, config, **kwargs)

    monkeypatch.setattr(tuning, "discover", discover)
    config = TuneConfig(tries={"mixture_balance": ["1", "2"]}, training=QUICK)
    found = tune(clouds(), tmp_path / "out", config)
    assert found is not None
    assert [row.settings["mixture_balance"] for row in found.rows if not row.is_default] == ["1"]
    assert len(found.failures) == 2
    assert "loss became nan" in (tmp_path / "out" / "tune.md").read_text()


def test_a_method_without_training(tmp_path: Path) -> None:
    said: list[str] = []
    found = newkind.tune(clouds(), tmp_path, tries={"n_init": [1, 3]}, method="kmeans")
    assert len(found.rows) == 3
    assert "how long is known after the first one" in said[0]
    assert found.command.startswith("newkind discover clouds --out RUN --method kmeans")


def ranked(*rows: tuple[float, ...], n_images: int = 10_000, **change) -> Ranking:  # type: ignore[no-untyped-def]
    """The first one is the default."""
    data = clouds()
    config = configure(data, training=change.pop("training", TrainingConfig()), trunk=BackboneConfig(**change))
    tried = [
        Tried(
            settings={"block_rate": str(i)},
            is_default=i == 0,
            folds=tuple({"all": v, "old": None, "new": v} for v in row),
        )
        for i, row in enumerate(rows)
    ]
    return rank(tried, config, data="my data", n_images=n_images)


def test_the_verdict(tmp_path: Path) -> None:
    ahead = ranked((0.5, 0.8), (0.6, 0.89), (0.5, 0.8))  # folds differ by 30 points, leads by one
    assert ahead.lead is not None
    assert ahead.lead.folds == pytest.approx((10, 9))
    assert ahead.chosen == {"block_rate": "1"}
    assert "leads the default by 9.5 points of All (by fold: +10.0, +9.0): more than the ± 0.7" in ahead.verdict()
    assert ahead.command == "newkind discover 'my data' --out RUN --epochs 200 --set block_rate=1"
    unsure = ranked((0.5, 0.8), (0.6, 0.72))
    assert unsure.chosen == {}
    assert "the default is as good" in unsure.verdict()
    assert unsure.command == "newkind discover 'my data' --out RUN"
    few = ranked((0.5, 0.8), (0.51, 0.81), n_images=100)  # one image of a hundred, in both folds
    assert "no more than the ± 4.8 that folds and 100 images leave open: the default is as good" in few.verdict()
    noisy = ranked((0.5, 0.8), (0.52, 0.82), (0.7, 0.6))  # others' leads differ far more
    assert noisy.chosen == {}
    own = ranked((0.6, 0.6), (0.6, 0.6), (0.5, 0.5))
    assert own.best.is_default
    assert "Nothing that was tried is better than the default (block_rate=0)." in own.verdict()
    with pytest.raises(RunError, match="No setting"):
        ranked()
    write_ranking(ahead, tmp_path)
    kept = json.loads((tmp_path / "tune.json").read_text())
    assert [row["settings"]["block_rate"] for row in kept["rows"]] == ["1", "0", "2"]
    assert kept["rows"][0]["all"] == {"mean": 74.5, "std": 20.51, "folds": [60.0, 89.0]}
    assert kept["rows"][0]["old"] == {"mean": None, "std": None, "folds": [None, None]}
    assert "| 1 | 74.5 ± 20.5 | - | 74.5 ± 20.5 |  |" in (tmp_path / "tune.md").read_text()


def test_the_next_command_is_under_the_same_conditions() -> None:
    words = ranked((0.5, 0.5), (0.4, 0.4), image_size=112, n_views=4, random_weights=True).command
    assert words == "newkind discover 'my data' --out RUN --random-weights --image-size 112 --views 4"
    words = ranked((0.5, 0.5), (0.9, 0.9), training=TrainingConfig(epochs=20, batch_size=64, seed=3)).command
    assert words.endswith("--out RUN --batch-size 64 --seed 3 --epochs 20 --set block_rate=1")
