"""The examples of guides run and print what the pages say."""

import doctest
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", ["categories.md", "data.md", "evaluation.md"])
def test_examples(name: str) -> None:
    blocks = re.findall(r"```pycon\n(.*?)```", (DOCS / name).read_text(), flags=re.DOTALL)
    assert blocks
    examples = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, name, name, 0)
    report: list[str] = []
    doctest.DocTestRunner(verbose=False).run(examples, out=report.append)
    assert not report, "".join(report)
