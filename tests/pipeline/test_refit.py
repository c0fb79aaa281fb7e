"""Refit: what it learns from decisions, what stays, and that it can be undone."""

from pathlib import Path

import numpy as np
import pytest
import torch

import newkind
from error_codes import raises
from feature_clusters import feature_clusters
from newkind.discovery import Discovery
from newkind.errors import RunError
from newkind.evaluation import calibration_error
from newkind.methods.modern import Modern
from newkind.pipeline.refit import accept_refit, plan_refit
from newkind.pipeline.split import propose_groups
from newkind.runs.decision import Decision

N_EACH, N_CLASSES, N_KNOWN = 16, 6, 3


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "clouds.npz"
    np.savez(path, **feature_clusters(N_CLASSES, N_KNOWN, n_each=N_EACH, dim=8))
    return path


@pytest.fixture
def found(tmp_path: Path, data: Path) -> Discovery:
    return newkind.discover(data, tmp_path / "run", n_categories=N_CLASSES, report=False)


def _new(found: Discovery) -> list[str]:
    return [category.id for category in found.categories if category.status == "new"]


def _truth(found: Discovery) -> np.ndarray:
    return np.arange(len(found.assignments)) // N_EACH


def test_ids_and_names_stay_and_confirmed_images_do_not_move(found: Discovery) -> None:
    a, b, c = _new(found)
    found.rename(a, "bee")
    found.approve(b)
    moved = found[c].images[:2]
    found.move(moved, "bee")
    plan = plan_refit(found.run)
    assert plan.became_known == [a, b]
    assert not {item.file for item in plan.moved} & {*moved, *found[b].images}
    before = [(category.id, category.name) for category in found.categories]
    event = accept_refit(found.run, plan)
    assert event.decision.kind == "refit"
    assert [(category.id, category.name) for category in found.categories] == before
    assert {category.id: category.status for category in found.categories} == {
        "0": "known", "1": "known", "2": "known", a: "known", b: "known", c: "new",
    }  # fmt: skip
    assert set(moved) <= set(found[a].images)
    assert {line.file: line.category for line in found.assignments} == {
        name: plan.after.categories[k].name for name, k in zip(plan.after.files, plan.after.category, strict=True)
    }


def test_nothing_is_written_before_it_is_accepted(found: Discovery) -> None:
    found.rename(_new(found)[0], "bee")
    before = {path: path.stat().st_mtime_ns for path in found.run.folder.rglob("*") if path.suffix != ".sqlite"}
    plan_refit(found.run)
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert not (found.run.folder / "refits").exists()


def test_predict_uses_the_refitted_model_until_it_is_undone(found: Discovery, data: Path) -> None:
    a, b, c = _new(found)
    before = found.predict(data)
    images = found[a].images
    found.merge([a, b], into=a)
    found.split(c, [found[c].images[:6]])
    found.approve(a)
    accept_refit(found.run, plan_refit(found.run))
    prototypes = {category.id: category.prototypes for category in found.categories}
    assert sorted(k for own in prototypes.values() for k in own) == list(range(7))  # one more by the split
    assert [len(prototypes[name]) for name in (a, c)] == [2, 1]
    after = found.predict(data)
    assert after == newkind.predict(found.run.folder, data)
    assert after != before
    assert {line.category for line in after if line.file in images} == {a}
    assert found.model.network.method.n_categories == 7
    for _ in range(4):
        found.undo()
    assert found.predict(data) == before
    assert newkind.predict(found.run.folder, data) == before


def test_groups_that_look_different_stay_merged(found: Discovery) -> None:
    a, b, _ = _new(found)
    images = {*found[a].images, *found[b].images}
    found.merge([a, b], into=a)
    found.accept(found.refit())
    assert len(images & set(found[a].images)) >= len(images) - 2


def test_the_answer_of_the_model_is_the_answer_of_the_run(found: Discovery, data: Path) -> None:
    found.rename(_new(found)[0], "bee")
    accept_refit(found.run, plan_refit(found.run))
    predicted = found.predict(data)
    for line, own in zip(predicted, found.assignments, strict=True):
        if own.status in ("known", "new"):
            assert line.category == own.category
            assert line.confidence == pytest.approx(own.confidence, abs=0.01)


def test_labels_improve_images_that_nobody_touched(tmp_path: Path) -> None:
    """Clouds that overlap: true classes of a quarter of the images are told."""
    arrays = feature_clusters(8, 4, n_each=60, dim=12)
    rng = np.random.default_rng(1)
    arrays["features"] += rng.normal(size=arrays["features"].shape).astype(np.float32) * np.linspace(0, 6, 12)
    np.savez(tmp_path / "clouds.npz", **arrays)
    found = newkind.discover(tmp_path / "clouds.npz", tmp_path / "run", n_categories=8, report=False)
    truth, answer = arrays["truth"], found.answer
    own = {c: int(np.bincount(answer.category[truth == c], minlength=8).argmax()) for c in range(8)}
    free = np.flatnonzero(answer.status != "labelled")
    told = rng.choice(free, len(free) // 4, replace=False)
    for c in range(8):
        files = [answer.files[i] for i in told if truth[i] == c]
        found.move(files, answer.categories[own[c]].id)
    rest = np.setdiff1d(free, told)
    right = np.array([own[c] for c in truth])
    before = (found.answer.category == right)[rest].mean()
    after = (plan_refit(found.run).after.category == right)[rest].mean()
    assert after > before


def test_confidences_are_calibrated_again(tmp_path: Path) -> None:
    """Clouds that overlap, first clustered by a method without calibration: its temperature says nothing about them."""
    arrays = feature_clusters(8, 5, n_each=60, dim=12)
    rng = np.random.default_rng(1)
    arrays["features"] += rng.normal(size=arrays["features"].shape).astype(np.float32) * np.linspace(0, 6, 12)
    np.savez(tmp_path / "clouds.npz", **arrays)
    found = newkind.discover(tmp_path / "clouds.npz", tmp_path / "run", method="kmeans", n_categories=8, report=False)
    truth, answer = arrays["truth"], found.answer
    own = {c: int(np.bincount(answer.category[truth == c], minlength=8).argmax()) for c in range(8)}
    free = np.flatnonzero(answer.status != "labelled")
    told = rng.choice(free, len(free) // 2, replace=False)
    for c in range(8):
        found.move([answer.files[i] for i in told if truth[i] == c], answer.categories[own[c]].id)
    plan = plan_refit(found.run)
    about = plan.card["confidence"]
    assert about["calibrated"]
    assert about["temperature"] == plan.method.temperature != plan.method.config.student_temperature
    rest = np.setdiff1d(free, told)
    is_right = plan.after.category[rest] == np.array([own[c] for c in truth])[rest]
    assert 0.5 < is_right.mean() < 0.99  # there is something to be unsure about
    assert calibration_error(plan.after.confidence[rest], is_right) < 0.1
    raw = Modern(12, plan.method.n_categories, plan.method.config)
    raw.load_state_dict(plan.method.state_dict())
    raw.read_out_temperature.fill_(plan.method.temperature / 10)
    far = (raw.logits(torch.from_numpy(arrays["features"][rest])) / raw.temperature).softmax(dim=1).max(dim=1).values
    assert calibration_error(far.detach().numpy(), is_right) > 0.1  # a wrong temperature is noticed


def test_rejected_images_stay_away(found: Discovery) -> None:
    a = _new(found)[0]
    images = found[a].images[:3]
    found.reject(images, a)
    accept_refit(found.run, plan_refit(found.run))
    assert not set(images) & set(found[a].images)
    assert all(line.category for line in found.assignments)


def test_an_image_that_was_rejected_from_all_categories_gets_none_of_them(found: Discovery) -> None:
    image = found[_new(found)[0]].images[0]
    for category in found.categories:
        found.reject(image, category.id)
    assert found.answer.category[found.answer.row[image]] < 0
    plan = plan_refit(found.run)
    assert image not in {moved.file for moved in plan.moved}
    found.accept(plan)
    assert (found.answer.category[found.answer.row[image]], found.answer.status[found.answer.row[image]]) == (
        -1,
        "unsure",
    )


def test_junk_is_left_out(found: Discovery) -> None:
    images = found[_new(found)[0]].images[:3]
    found.junk(images)
    plan = plan_refit(found.run)
    assert not set(images) & set(plan.own.files)
    accept_refit(found.run, plan)
    assert {line.status for line in found.assignments if line.file in images} == {"junk"}


def test_a_plan_is_stale_after_another_decision(found: Discovery) -> None:
    a, b, _ = _new(found)
    found.rename(a, "bee")
    plan = plan_refit(found.run)
    found.note("a note does not matter")
    found.rename(b, "wasp")
    with raises(RunError, "stale"):
        accept_refit(found.run, plan)
    assert not list((found.run.folder / "refits").iterdir())


def test_a_second_refit_starts_from_the_first(found: Discovery, data: Path) -> None:
    a, b, _ = _new(found)
    found.approve(a)
    first = accept_refit(found.run, plan_refit(found.run))
    found.approve(b)
    second = accept_refit(found.run, plan_refit(found.run))
    assert found.answer.refit == second.decision.refit
    found.undo()
    assert found.answer.refit == first.decision.refit
    assert len(found.predict(data)) == N_CLASSES * N_EACH


def test_decisions_after_a_refit_apply_to_its_answer(found: Discovery, data: Path) -> None:
    a, b, _ = _new(found)
    found.approve(a)
    accept_refit(found.run, plan_refit(found.run))
    found.merge([a, b])
    assert b not in {line.category for line in found.predict(data)}
    assert len(found[a].images) == sum(line.category == a for line in found.assignments)


def test_other_methods_can_be_refitted(tmp_path: Path, data: Path) -> None:
    found = newkind.discover(data, tmp_path / "means", method="kmeans", n_categories=N_CLASSES, report=False)
    found.approve(_new(found)[0])
    accept_refit(found.run, plan_refit(found.run))
    assert found.run.read_json(found.run.model_card)["method"] == "kmeans"
    predicted = {line.file: line.category for line in found.predict(data)}
    assert np.mean([predicted[line.file] == line.category for line in found.assignments]) > 0.9


def test_runs_that_cannot_be_refitted(found: Discovery) -> None:
    found.run.features_file.unlink()
    with raises(RunError, "no-features"):
        plan_refit(found.run)
    with raises(RunError, "no-features"):
        propose_groups(found.run, found.answer, "0")


def test_a_damaged_refit_is_an_error(found: Discovery) -> None:
    found.approve(_new(found)[0])
    event = accept_refit(found.run, plan_refit(found.run))
    (found.run.folder / "refits" / event.decision.refit / "assignments.csv").unlink()
    with raises(RunError, "refit-damaged"):
        newkind.load(found.run.folder)
    Discovery(found.run, found.outcome).undo()
    assert newkind.load(found.run.folder).answer.refit == ""


def test_the_name_of_a_refit_cannot_leave_the_run(found: Discovery) -> None:
    with raises(RunError, "invalid-decision"):
        Decision("refit", refit="../other")
    with raises(RunError, "refit-damaged"):
        found.decide(Decision("refit", refit="0123456789ab"))
    assert found.history() == []


def test_proposed_groups_separate_what_was_merged(found: Discovery) -> None:
    a, b, _ = _new(found)
    images = set(found[a].images)
    found.merge([a, b], into=a)
    groups = propose_groups(found.run, found.answer, a)
    assert len(groups) == 2
    assert max(len(images & set(group)) for group in groups) >= 0.9 * len(images)
