"""Spreads, escaping and the four formats of a table."""

import csv
import io
import json
from statistics import stdev

import pytest

from newkind.experiments.paper.latex import escape, latex_table
from newkind.experiments.paper.table import Column, Table, shown, to_csv, to_json, to_latex, to_markdown, write_table
from newkind.experiments.spread import spread_of


@pytest.fixture
def table() -> Table:
    rows = [
        {"data": "a_b", "label": "50 % & more", "all": spread_of([0.5, 0.7], times=100), "published": (1.0, 2.0, 3.0)},
        {"data": "c|d", "label": "none", "all": None, "published": None},
    ]
    columns = (
        Column("data", "Data"),
        Column("label", "Method"),
        Column("all", "All", "spread"),
        Column("published", "P", "n"),
    )
    return Table(
        study="s", title="T_1", about={"data": "x", "k_rule": "known"}, columns=columns, rows=rows, notes=("N.",)
    )


def test_spreads() -> None:
    found = spread_of([0.1, None, 0.2, 0.4], times=100)
    assert found is not None
    assert found.mean == pytest.approx(70 / 3)
    assert found.std == pytest.approx(stdev([10, 20, 40]))
    assert str(found) == "23.3 ± 15.3"
    single = spread_of([0.5])
    assert single is not None
    assert single.std is None
    assert single.shown(2) == "0.50"
    assert spread_of([None]) is None
    assert shown(None, "spread") == "–"
    assert shown(single, "count") == "0"
    assert shown(spread_of([3, 4]), "count") == "3.5 ± 0.7"
    assert shown(3700, "time") == "62 min"
    assert shown(0.01234, "short") == "0.0123 s"


def test_every_special_character_is_escaped() -> None:
    assert escape(r"a\b & 5% $x #1 a_b {c} ~ ^ <") == (
        r"a\textbackslash{}b \& 5\% \$x \#1 a\_b \{c\} \textasciitilde{} \textasciicircum{} \textless{}"
    )
    assert escape("1 ± 2 × ε –") == r"1 $\pm$ 2 $\times$ $\varepsilon$ --"
    text = latex_table(
        label="l", caption="100 %", titles=["A_b", "B"], is_text=[True, False], rows=[["x", "1"]] * 2, rules=[1]
    )
    assert r"\caption{100 \%}" in text
    assert r"\begin{tabular}{lr}" in text
    assert r"  A\_b & B \\" in text
    assert text.count(r"\midrule") == 2
    assert text.index(r"\toprule") < text.index(r"\bottomrule")


def test_the_four_formats(table: Table, tmp_path) -> None:
    first, second = csv.DictReader(io.StringIO(to_csv(table)))
    assert float(first["all_mean"]) == 60
    assert float(first["all_std"]) == pytest.approx(stdev([50, 70]), abs=1e-4)
    assert (first["published_all"], first["published_new"], second["published_old"]) == ("1.0", "3.0", "")
    assert first["protocol_k_rule"] == "known"
    content = json.loads(to_json(table))
    assert content["rows"][0]["all"]["values"] == [50, 70]
    assert content["rows"][1]["all"] is None
    assert content["protocol"]["data"] == "x"
    assert r"| c\|d | none | – | – |" in to_markdown(table)
    assert "- Number of categories: known." in to_markdown(table)
    latex = to_latex(table)
    assert r"a\_b & 50 \% \& more & 60.0 $\pm$ 14.1 & 1.0 / 2.0 / 3.0 \\" in latex
    assert latex.count(r"\midrule") == 2
    assert [path.name for path in write_table(table, tmp_path)] == ["s.csv", "s.json", "s.md", "s.tex"]
    assert not list(tmp_path.glob("*.partial"))
