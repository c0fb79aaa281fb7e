"""Tables and figures of the paper by name: what they show, on which data, and which study makes them.

The list is in `catalogue.json`. The two drawings of how methods work (the teaser and the framework) show no results and are
not in it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from newkind.experiments.next_command import shell_command

__all__ = ["ARTEFACTS", "Artefact"]


@dataclass(frozen=True, kw_only=True)
class Artefact:
    """A table or figure of the paper.

    Parameters
    ----------
    name : str
        tab-... or fig-..., after its label in the paper.
    shows : str
        What it shows.
    study : str
        Study that makes it.
    data : tuple of str
        Benchmarks of the paper's version.
    methods : tuple of str, default=()
        Methods, if they are not those of the study.
    epsilons : tuple of float, default=()
        Weights of the entropy term, if they are not those of the study.
    file : str, default=""
        File name of a figure without suffix. Empty for a table, whose file is named after the study.
    """

    name: str
    shows: str
    study: str
    data: tuple[str, ...]
    methods: tuple[str, ...] = ()
    epsilons: tuple[float, ...] = ()
    file: str = ""

    def command(self) -> str:
        """Command that makes it, with FOLDER and OUT as placeholders."""
        words = ["newkind", "bench", self.study]
        for name in self.data:
            words += ["--data", f"{name}:FOLDER"]
        words += ["--methods", ",".join(self.methods)] if self.methods else []
        words += ["--epsilons", ",".join(f"{value:g}" for value in self.epsilons)] if self.epsilons else []
        return shell_command(*words, "--out", "OUT")

    def files(self) -> str:
        """Files that the command writes for it."""
        return f"{self.file}.svg, .png" if self.file else f"{self.study}.csv, .json, .md, .tex"


def _read() -> dict[str, Artefact]:
    """All artefacts of catalogue.json by name."""
    text = files("newkind.experiments.paper").joinpath("catalogue.json").read_text(encoding="utf-8")
    found = {}
    for row in json.loads(text):
        values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
        found[row["name"]] = Artefact(**values)
    return found


ARTEFACTS: dict[str, Artefact] = _read()
