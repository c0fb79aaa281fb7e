"""The examples of docs/evaluation.md run and print what the page says."""

import doctest
import re
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs" / "evaluation.md"


def test_the_guide_is_true() -> None:
    blocks = re.findall(r"```pycon\n(.*?)```", GUIDE.read_text(), flags=re.DOTALL)
    assert len(blocks) > 5
    examples = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, GUIDE.name, str(GUIDE), 0)
    report: list[str] = []
    doctest.DocTestRunner(verbose=False).run(examples, out=report.append)
    assert not report, "".join(report)
