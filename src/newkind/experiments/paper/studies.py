"""All studies by name."""

from __future__ import annotations

from newkind.experiments.paper.embedding import embedding_rows, measure_embedding
from newkind.experiments.paper.inference import inference_rows, measure_inference
from newkind.experiments.paper.results import ERRORS, distance_rows, epoch_rows
from newkind.experiments.paper.rows import (
    EPSILONS,
    PAPER_ORDER,
    ablation_rows,
    distribution_rows,
    epsilon_rows,
    k_rows,
    logit_adjust_rows,
    method_rows,
    pilot_rows,
    recipe_rows,
    system_rows,
    unknown_k_rows,
)
from newkind.experiments.paper.study import Study, columns

__all__ = ["STUDIES"]

METHOD = columns(label="Method")
SCORES = columns(
    "spread",
    all="All",
    old="Old",
    new="New",
    by_name_all="All by name",
    by_name_old="Old by name",
    by_name_new="New by name",
)
TRUST = columns("spread", novelty_auroc="Novelty AUROC", calibration_error="Calibration error")
ERROR_COLUMNS = columns("spread", **ERRORS)
RULE = columns(rule="Number of categories")
K = columns("count", k="K")
ACTIVE = columns("count", active="Active")
PUBLISHED = columns("spread", published="Published")
SEEDS = columns("number", seeds="Seeds")
TAIL = SEEDS + columns("time", seconds="Time")
TIME_NOTE = "Time: training and assigning of one run, mean over seeds, without the tokens that all runs share."
ACTIVE_NOTE = "Active: number of categories with at least one unlabelled image."
PREDICTING = ("uno", "gcd", "simgcd")

_STUDIES = [
    Study(
        name="data",
        title="Statistics of the data",
        rows=lambda _: [],
        columns=(
            columns(label="Data")
            + columns("number", labelled_images="Labelled", labelled_classes="Classes")
            + columns("number", unlabelled_images="Unlabelled", unlabelled_classes="Classes")
            + columns("number", imbalance="Largest / smallest class")
            + columns(statistics="Published")
        ),
    ),
    Study(
        name="methods",
        title="All methods under one protocol",
        rows=lambda ask: method_rows(ask.data, ask.methods),
        columns=METHOD + SCORES + TRUST + PUBLISHED + TAIL,
        methods=PAPER_ORDER,
        notes=(TIME_NOTE,),
    ),
    Study(
        name="systems",
        title="All methods with their own and with equal learning rate, batch size and weight decay",
        rows=lambda ask: system_rows(ask.data, ask.methods),
        columns=METHOD
        + columns(optimizer="Learning rate, batch, weight decay")
        + SCORES
        + TRUST
        + ACTIVE
        + PUBLISHED
        + TAIL,
        methods=(*PAPER_ORDER, "modern"),
        notes=("The learning rate is that of the batch; the equal ones are those of SimGCD.", ACTIVE_NOTE, TIME_NOTE),
    ),
    Study(
        name="ablation",
        title="Steps from GCD to SimGCD",
        rows=lambda ask: ablation_rows(ask.data, ask.protocol.recipe),
        columns=columns(label="Step", step="Change") + SCORES + TRUST + PUBLISHED + TAIL,
        notes=(TIME_NOTE,),
    ),
    Study(
        name="pilot",
        title="Supervision, features and training of the classifier",
        rows=lambda ask: pilot_rows(ask.data),
        columns=columns(label="Supervision", classifier_on="Classifier on", training="Training")
        + SCORES
        + TRUST
        + PUBLISHED
        + TAIL,
        notes=("Oracle rows learn from the truth of every image: an upper bound, not a method.", TIME_NOTE),
    ),
    Study(
        name="epsilon",
        title="SimGCD by weight of the entropy term",
        rows=lambda ask: epsilon_rows(ask.data, ask.protocol.epsilons or EPSILONS),
        columns=columns(label="Epsilon") + SCORES + TRUST + ERROR_COLUMNS + ACTIVE + PUBLISHED + TAIL,
        takes_epsilons=True,
        tabulate=distance_rows,
        notes=("Errors are shares of all unlabelled images.", ACTIVE_NOTE, TIME_NOTE),
    ),
    Study(
        name="k",
        title="Fewer and more categories than the true number",
        rows=lambda ask: k_rows(ask.data, ask.methods, ask.protocol.epsilons),
        columns=METHOD + columns(factor="Times the true number") + K + SCORES + TRUST + ACTIVE + PUBLISHED + TAIL,
        k_rule="a multiple of the true number, at least the number of known classes",
        methods=("simgcd",),
        takes_epsilons=True,
        notes=(ACTIVE_NOTE, TIME_NOTE),
    ),
    Study(
        name="unknown-k",
        title="Known, estimated, doubled and automatic number of categories",
        rows=lambda ask: unknown_k_rows(ask.data, ask.methods, ask.estimate),
        columns=METHOD + RULE + K + SCORES + TRUST + ACTIVE + PUBLISHED + TAIL,
        k_rule="known (the true number), estimated (once, from the frozen features), twice the true number, or auto "
        "(estimated in every run as discover does, with merging of spare categories)",
        methods=("gcd", "simgcd"),
        needs_estimate=True,
        notes=(ACTIVE_NOTE, TIME_NOTE),
    ),
    Study(
        name="recipes",
        title="SimGCD as published and modern, with known and unknown numbers of categories",
        rows=lambda ask: recipe_rows(ask.data, ask.protocol.recipe),
        columns=METHOD + RULE + K + SCORES + TRUST + ACTIVE + TAIL,
        k_rule="known (the true number), auto (estimated), or twice the true number (for SimGCD modern as an upper bound)",
        notes=(ACTIVE_NOTE, TIME_NOTE),
    ),
    Study(
        name="errors",
        title="Four kinds of errors",
        rows=lambda ask: method_rows(ask.data, ask.methods),
        columns=METHOD + SCORES + ERROR_COLUMNS + TAIL,
        methods=PREDICTING,
        notes=(
            "Shares of all unlabelled images. The second word is the prediction: False Old is a new class predicted as a "
            "known one, True New is a new class predicted as another new one.",
            TIME_NOTE,
        ),
    ),
    Study(
        name="distribution",
        title="Sizes of predicted and true categories",
        rows=lambda ask: distribution_rows(ask.data, ask.methods),
        columns=METHOD + SCORES + TRUST + ACTIVE + columns("spread", distance="Distance") + TAIL,
        methods=PREDICTING,
        tabulate=distance_rows,
        notes=(
            "Distance: half the sum of absolute differences between predicted and true shares, both sorted by size; 0 if "
            "all sizes are equal.",
            ACTIVE_NOTE,
            TIME_NOTE,
        ),
    ),
    Study(
        name="epochs",
        title="Old and New over epochs",
        rows=lambda ask: method_rows(ask.data, ask.methods),
        columns=METHOD + columns("number", epoch="Epoch") + SCORES + SEEDS,
        methods=("simgcd",),
        tabulate=epoch_rows,
        notes=("Scores during training are not used to choose anything: all other tables use the last epoch.",),
    ),
    Study(
        name="logit-adjust",
        title="Comparison with methods that adjust logits against imbalance",
        rows=lambda ask: logit_adjust_rows(ask.data, ask.methods),
        columns=METHOD + columns(adjusts="Logit adjustment") + SCORES + TRUST + PUBLISHED + TAIL,
        methods=("orca", "debiaspl", "uno", "gcd", "simgcd"),
        notes=(TIME_NOTE,),
    ),
    Study(
        name="inference",
        title="Inference time on the same features of SimGCD",
        rows=lambda ask: method_rows(ask.data, ["simgcd"]),
        columns=columns(label="Assigned by")
        + columns("number", n_images="Images")
        + columns("short", seconds="Time")
        + columns("number", ratio="Ratio")
        + SCORES
        + columns(published_time="Published", device="Device")
        + SEEDS,
        tabulate=inference_rows,
        measure=measure_inference,
        notes=(
            "Time: assigning only, mean over seeds; the features, which both need, are given. Semi-supervised k-means with "
            "10 restarts of at most 200 iterations. Published: SimGCD and GCD with features, on one RTX 3090.",
        ),
    ),
    Study(
        name="tsne",
        title="Features before and after training",
        rows=lambda ask: method_rows(ask.data, ["simgcd"]),
        columns=columns(label="Features")
        + columns("number", n_images="Images", n_classes="Classes", silhouette="Silhouette"),
        one_seed=True,
        tabulate=embedding_rows,
        measure=measure_embedding,
        notes=(
            "Ten random classes with at most 100 unlabelled images each. Silhouette: of the true classes, with cosine "
            "distance, from -1 to 1. With precomputed features only the heads are trained: there, 'after' is the output of "
            "the projector.",
        ),
    ),
]
STUDIES: dict[str, Study] = {study.name: study for study in _STUDIES}
