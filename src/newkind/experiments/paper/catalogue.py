"""Every table and figure of the paper by a name: what it shows, on which data, and which study makes it.

The two drawings of how methods are built (the teaser and the framework) show no result and are left out.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ARTEFACTS", "Artefact"]

EIGHT = (
    "cifar10",
    "cifar100",
    "imagenet_100",
    "cub",
    "stanford_cars",
    "fgvc_aircraft",
    "herbarium_19",
    "imagenet_1k",
)
FIVE = ("cifar100", "imagenet_100", "cub", "stanford_cars", "herbarium_19")


@dataclass(frozen=True, kw_only=True)
class Artefact:
    """A table or a figure."""

    name: str
    """tab-... or fig-..., after its label in the paper."""
    shows: str
    data: tuple[str, ...]
    """Benchmarks that the paper shows it on."""
    study: str
    methods: tuple[str, ...] = ()
    """If it is about other methods than the study takes by itself."""
    epsilons: tuple[float, ...] = ()
    """Likewise."""
    file: str = ""
    """The figure's file name without suffix; of a table the study's own name."""

    def options(self) -> str:
        """Beside --data and --out."""
        methods = f"--methods {','.join(self.methods)}" if self.methods else ""
        epsilons = f"--epsilons {','.join(f'{value:g}' for value in self.epsilons)}" if self.epsilons else ""
        return " ".join(filter(None, (methods, epsilons)))

    def command(self) -> str:
        """That makes it."""
        data = " ".join(f"--data {name}:FOLDER" for name in self.data)
        return " ".join(filter(None, (f"newkind bench {self.study}", data, self.options(), "--out OUT")))

    def files(self) -> str:
        """What the command writes for it."""
        return f"{self.file}.svg, .png" if self.file else f"{self.study}.csv, .json, .md, .tex"


ARTEFACTS: dict[str, Artefact] = {
    artefact.name: artefact
    for artefact in (
        Artefact(name="tab-datasplit", shows="statistics of the datasets", data=EIGHT, study="data"),
        Artefact(
            name="tab-ssb",
            shows="main results, Semantic Shift Benchmark",
            data=("cub", "stanford_cars", "fgvc_aircraft"),
            study="methods",
        ),
        Artefact(
            name="tab-generic",
            shows="main results, generic recognition",
            data=("cifar10", "cifar100", "imagenet_100"),
            study="methods",
        ),
        Artefact(
            name="tab-herb19",
            shows="main results, harder datasets",
            data=("herbarium_19", "imagenet_1k"),
            study="methods",
        ),
        Artefact(
            name="tab-main-complete",
            shows="SimGCD over three runs, with deviations",
            data=EIGHT,
            study="methods",
            methods=("simgcd",),
        ),
        Artefact(
            name="tab-time",
            shows="time of inference against semi-supervised k-means",
            data=("cifar100", "cub", "herbarium_19", "imagenet_100", "imagenet_1k"),
            study="inference",
        ),
        Artefact(name="tab-predicted-k", shows="estimated numbers of categories", data=FIVE, study="unknown-k"),
        Artefact(
            name="tab-unknownk-generic",
            shows="unknown number of categories, generic recognition",
            data=("cifar100", "imagenet_100"),
            study="unknown-k",
        ),
        Artefact(
            name="tab-unknownk-ssb",
            shows="unknown number of categories, Semantic Shift Benchmark",
            data=("cub", "stanford_cars"),
            study="unknown-k",
        ),
        Artefact(name="tab-imbalanced", shows="beside methods that adjust logits", data=FIVE, study="logit-adjust"),
        Artefact(
            name="fig-radar",
            shows="Old and New of UNO+, GCD and SimGCD at a glance",
            data=EIGHT[:-1],
            study="methods",
            methods=("uno", "gcd", "simgcd"),
            file="methods",
        ),
        Artefact(
            name="fig-clusterpos",
            shows="classifier on the backbone or on the projector, under four supervisions",
            data=("cifar100", "cub"),
            study="pilot",
            file="pilot",
        ),
        Artefact(
            name="fig-decouple",
            shows="decoupled or joint training, under four supervisions",
            data=("cifar100", "cub"),
            study="pilot",
            file="pilot",
        ),
        Artefact(
            name="fig-errors",
            shows="four kinds of errors of UNO+ and GCD",
            data=("cifar100", "cub"),
            study="errors",
            methods=("uno", "gcd"),
            file="errors",
        ),
        Artefact(
            name="fig-longtail",
            shows="per-class predictions of UNO+ and GCD",
            data=("cifar100", "cub"),
            study="distribution",
            methods=("uno", "gcd"),
            file="distribution",
        ),
        Artefact(name="fig-ablation", shows="steps from GCD to SimGCD", data=FIVE, study="ablation", file="ablation"),
        Artefact(
            name="fig-ours-error",
            shows="four kinds of errors against epsilon",
            data=("cifar100", "cub"),
            study="epsilon",
            file="epsilon-errors",
        ),
        Artefact(
            name="fig-ours-longtail",
            shows="per-class predictions against epsilon",
            data=("cifar100", "cub"),
            study="epsilon",
            file="epsilon-distribution",
        ),
        Artefact(
            name="fig-errors-ours-full",
            shows="four kinds of errors against epsilon, all datasets",
            data=FIVE,
            study="epsilon",
            file="epsilon-errors",
        ),
        Artefact(
            name="fig-ours-longtail-full",
            shows="per-class predictions against epsilon, all datasets",
            data=FIVE,
            study="epsilon",
            file="epsilon-distribution",
        ),
        Artefact(
            name="fig-ours-longtail-closer",
            shows="per-class predictions against epsilon, a closer look",
            data=("imagenet_100", "herbarium_19"),
            study="epsilon",
            file="epsilon-distribution",
        ),
        Artefact(
            name="fig-ks",
            shows="accuracy against the number of categories, under weights of the entropy term",
            data=FIVE,
            study="k",
            epsilons=(1.0, 2.0, 4.0),
            file="k",
        ),
        Artefact(
            name="fig-largek-analysis",
            shows="per-class predictions with more categories than there are",
            data=("cifar100", "cub"),
            study="k",
            file="k-distribution",
        ),
        Artefact(
            name="fig-largek-analysis-another",
            shows="the same on two more datasets",
            data=("imagenet_100", "herbarium_19"),
            study="k",
            file="k-distribution",
        ),
        Artefact(
            name="fig-error",
            shows="predictions of GCD and SimGCD on the same representation; tail classes",
            data=("cifar100",),
            study="distribution",
            methods=("gcd", "simgcd"),
            file="distribution",
        ),
        Artefact(
            name="fig-tsne",
            shows="features before and after joint training",
            data=("cifar100",),
            study="tsne",
            file="tsne",
        ),
        Artefact(
            name="fig-tradeoff",
            shows="Old against New in the course of training",
            data=("cifar100", "cub"),
            study="epochs",
            file="epochs",
        ),
    )
}
