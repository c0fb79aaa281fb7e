"""Several studies of the paper in one resumable command, printed as Markdown.

    python benchmarks/studies/paper.py OUT --data cub:FOLDER --data groceries --epochs 20 --views 4 --image-size 112

The studies are those of `newkind bench`: all systems with their own and with equal optimizer settings, the pilot study, kinds of
errors, sizes of predicted categories, and accuracy against the number of categories for two weights of the entropy term. Runs
that studies share are computed once, finished ones never again. Tokens come from the cache of `newkind cache`, if it has
them. The table of a study is printed as soon as it is complete, and OUT has it after every run.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from newkind.config import BackboneConfig
from newkind.experiments.cells import slug
from newkind.experiments.paper.dataset import BenchData, open_bench_data
from newkind.experiments.paper.plan_study import plan_study
from newkind.experiments.paper.protocol import Protocol
from newkind.experiments.paper.run_study import build_table, run_study
from newkind.experiments.paper.studies import STUDIES
from newkind.experiments.paper.study import Study
from newkind.experiments.paper.table import to_markdown

DEFAULT = ("systems", "pilot", "errors", "distribution", "k")


def study_without(name: str, skipped: Sequence[str]) -> Study:
    """A study without the rows whose title has one of some texts."""
    study = STUDIES[name]
    return replace(
        study, rows=lambda ask: [row for row in study.rows(ask) if not any(text in row.title() for text in skipped)]
    )


def run(study: Study, data: BenchData, protocol: Protocol, out: Path) -> None:
    """Run one study on one data and print its table."""
    protocol = protocol if study.takes_epsilons else replace(protocol, epsilons=())
    plan = plan_study(study, [data], protocol, out)
    run_study(plan)
    print(f"\n<!-- {data.title} -->\n{to_markdown(build_table(plan))}", flush=True)
    for cell, error in plan.schedule.failures.items():
        print(f"Failed: {cell}: {error}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="Folder for runs and tables, with one subfolder per data.")
    parser.add_argument("--data", action="append", required=True, help="Data with truth, as for newkind bench.")
    parser.add_argument("--studies", nargs="+", default=DEFAULT, choices=STUDIES, help="Studies, in this order.")
    parser.add_argument(
        "--skip", nargs="+", default=(), help="Texts: leave out rows that have one of them in their title."
    )
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epsilons", type=float, nargs="+", default=(1.0, 2.0), help="Weights for the study k.")
    parser.add_argument("--views", type=int, default=4)
    parser.add_argument("--image-size", type=int, default=112)
    parser.add_argument("--trunk-precision", default=BackboneConfig.trunk_precision, help="As for newkind discover.")
    parser.add_argument("--weights", type=Path, help="File with the weights of the backbone.")
    parser.add_argument("--backbone", default=BackboneConfig.name)
    asked = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")  # to stderr
    backbone = BackboneConfig(
        name=asked.backbone,
        weights=asked.weights,
        views=asked.views,
        image_size=asked.image_size,
        trunk_precision=asked.trunk_precision,
    )
    protocol = Protocol(seeds=asked.seeds, epochs=asked.epochs, epsilons=tuple(asked.epsilons), backbone=backbone)
    datas = [open_bench_data(text) for text in asked.data]
    for name in asked.studies:
        for data in datas:
            run(study_without(name, asked.skip), data, protocol, asked.out / slug(data.benchmark or data.title))


if __name__ == "__main__":
    main()
