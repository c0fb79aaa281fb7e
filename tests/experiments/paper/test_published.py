"""Published results, and the catalogue of the paper's tables and figures."""

import re
import shlex
from pathlib import Path

import pytest

from newkind.data import BENCHMARKS
from newkind.experiments.paper.catalogue import ARTEFACTS, Artefact
from newkind.experiments.paper.figures import FIGURES
from newkind.experiments.paper.published import accuracy_of, estimate_of, statistics_of, time_of, unknown_k_of
from newkind.experiments.paper.studies import STUDIES
from newkind.methods.registry import METHODS


def test_numbers_of_the_paper() -> None:
    assert accuracy_of("cub", "simgcd") == (60.3, 65.6, 57.7)
    assert accuracy_of("imagenet_1k", "gcd") == (52.5, 72.5, 42.2)
    assert unknown_k_of("cub", "gcd", "known") == accuracy_of("cub", "gcd")
    assert unknown_k_of("cub", "simgcd", "estimated") == (61.5, 66.4, 59.1)
    assert unknown_k_of("stanford_cars", "simgcd", "twice") == (48.2, 64.6, 40.2)
    assert estimate_of("herbarium_19") == 520
    assert time_of("cub", "simgcd") == "18s"
    assert statistics_of("stanford_cars") == "2.0K (98), 6.1K (196)"


def test_what_was_not_published_is_none() -> None:
    assert accuracy_of("", "simgcd") is None
    assert accuracy_of("imagenet_1k", "uno") is None
    assert accuracy_of("fgvc_aircraft", "debiaspl") is None
    assert unknown_k_of("cub", "gcd", "twice") is None
    assert unknown_k_of("cub", "simgcd", "auto") is None
    assert estimate_of("fgvc_aircraft") is None
    assert time_of("cifar10", "gcd") is None
    assert statistics_of("groceries") is None


def test_statistics_are_those_of_the_splits() -> None:
    for name, benchmark in BENCHMARKS.items():
        found = statistics_of(name)
        assert found is not None
        assert f"({benchmark.n_old})" in found
        assert found.endswith(f"({benchmark.n_classes})")


@pytest.mark.parametrize("artefact", ARTEFACTS.values(), ids=list(ARTEFACTS))
def test_every_artefact_can_be_made(artefact: Artefact) -> None:
    study = STUDIES[artefact.study]
    assert set(artefact.data) <= set(BENCHMARKS)
    assert set(artefact.methods) <= set(METHODS)
    assert not artefact.methods or study.methods
    assert not artefact.epsilons or study.takes_epsilons
    assert artefact.name.startswith("fig-") == bool(artefact.file)
    assert artefact.name not in STUDIES
    assert not artefact.file or (artefact.study in FIGURES and artefact.file.startswith(study.name))
    words = shlex.split(artefact.command())
    assert words[:3] == ["newkind", "bench", artefact.study]
    assert words.count("--data") == len(artefact.data)


def test_every_study_makes_an_artefact() -> None:
    ours = {"recipes", "systems"}  # not in the paper
    assert {artefact.study for artefact in ARTEFACTS.values()} == set(STUDIES) - ours


def test_the_page_about_reproducing_has_every_artefact() -> None:
    page = (Path(__file__).parents[3] / "docs" / "reproducing.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `((?:tab|fig)-[\w-]+)` \|", page, re.M)
    assert listed == list(ARTEFACTS)
