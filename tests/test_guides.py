"""The guides: examples run and print what the pages say, commands and names on the pages exist."""

import ast
import doctest
import importlib
import logging
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from newkind.cli import app

ROOT = Path(__file__).parents[1]
GUIDES = sorted((ROOT / "docs").glob("*.md"))
PAGES = [*sorted(ROOT.glob("*.md")), *GUIDES]
WITH_EXAMPLES = [path for path in GUIDES if "```pycon" in path.read_text(encoding="utf-8")]
PUBLIC = ("newkind", "data", "evaluation", "losses", "clustering", "sklearn", "config", "errors")


def blocks(path: Path, language: str) -> list[str]:
    """Code blocks of a page in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def name_of(path: Path) -> str:
    return path.name


@pytest.fixture
def own_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A cache of its own, an empty working folder, and the logging level as it was."""
    monkeypatch.setenv("NEWKIND_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    logger = logging.getLogger("newkind")
    level = logger.level
    yield
    logger.setLevel(level)


@pytest.mark.usefixtures("own_surroundings")
@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=name_of)
def test_examples_run(path: Path) -> None:
    text = "\n".join(blocks(path, "pycon"))
    examples = doctest.DocTestParser().get_doctest(text, {}, path.name, path.name, 0)
    report: list[str] = []
    doctest.DocTestRunner(verbose=False).run(examples, out=report.append)
    assert not report, "".join(report)


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_imports_of_python_blocks_exist(path: Path) -> None:
    for block in blocks(path, "python"):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("newkind"):
                module = importlib.import_module(node.module or "")
                for alias in node.names:
                    assert hasattr(module, alias.name), f"{path.name}: from {node.module} import {alias.name}"


def commands_of(path: Path) -> list[list[str]]:
    """Words of every `newkind` command in console blocks and in code in the text; optional parts are included."""
    text = path.read_text(encoding="utf-8")
    lines = [line[2:] for block in blocks(path, "console") for line in block.splitlines() if line.startswith("$ ")]
    lines += re.findall(r"`([^`\n]*newkind [^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE))
    found = []
    for line in lines:
        words = shlex.split(line.replace("[", " ").replace("]", " "), comments=True)
        starts = [i for i, word in enumerate(words) if word.split("/")[-1] == "newkind"]
        if starts and words[starts[0] + 1 :]:
            found.append(words[starts[0] + 1 :])
    return found


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_commands_and_their_options_exist(path: Path) -> None:
    verbs = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    for words in commands_of(path):
        command = verbs.get(words[0])
        if command is None:
            assert words[0].startswith("-") or not words[0].islower(), f"{path.name}: newkind {words[0]}"
            continue
        known = {option for item in command.params for option in (*item.opts, *item.secondary_opts)} | {"--help"}
        for inner in getattr(command, "commands", {}).values():
            known |= {option for item in inner.params for option in item.opts}
        for word in words[1:]:
            if word.startswith("--"):
                assert word.split("=")[0] in known, f"{path.name}: newkind {words[0]} {word}"


def test_the_path_of_one_image_names_existing_code() -> None:
    text = (ROOT / "docs" / "how_it_works.md").read_text(encoding="utf-8")
    names = re.findall(r"`((?:[a-z_]+\.)+\w+)`", text.split("## The path of one image")[1])
    assert len(names) > 20
    for name in names:
        if name.endswith((".jpg", ".html")):
            continue
        parts = name.split(".")
        n = max(i for i in range(1, len(parts)) if find_module(parts[:i]))
        value = importlib.import_module(".".join(["newkind", *parts[:n]]))
        for part in parts[n:]:
            value = getattr(value, part)


def find_module(parts: list[str]) -> bool:
    place = ROOT / "src" / "newkind" / Path(*parts)
    return place.is_dir() or place.with_suffix(".py").exists()


@pytest.mark.parametrize("name", PUBLIC)
def test_the_api_reference_has_every_public_name(name: str) -> None:
    page = (ROOT / "docs" / "api" / f"{name}.md").read_text(encoding="utf-8")
    shown = {line.split(".")[-1] for line in page.splitlines() if line.startswith("::: ")}
    linked = set(re.findall(r"\[newkind\.[\w.]*?(\w+)\]", page))
    module = importlib.import_module("newkind" if name == "newkind" else f"newkind.{name}")
    assert set(module.__all__) - {"__version__"} <= shown | linked
