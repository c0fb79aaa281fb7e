"""The house's own rules: what flows where, what is public, what stays light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import newkind

SOURCE = Path(newkind.__file__).parent

# Data flows one way: a module imports only from its own line or from the lines above it.
ORDER = [
    "errors",
    "places",
    "allocator",
    "progress",
    "data.names",
    "data.decoding",
    "data.catalog",
    "data.labels",
    "data.splits",
    "data.sources",
    "data.tables",
    "data.layouts",
    "data.cifar",
    "data.benchmarks",
    "data.truth_table",
    "data.opening",
    "data.inspection",
    "data.views",
    "data.loading",
    "data.sampling",
    "backbone.folded",
    "backbone.tokens",
    "backbone.split",
    "backbone.onnx_file",
    "backbone.wheel",
    "backbone.weights",
    "backbone.store",
    "backbone.cache",
    "backbone.shelf",
    "backbone.online",
    "backbone.ready",
    "backbone.preparing",
    "distributed",
    "heads",
    "losses",
    "clustering.rows",
    "clustering.lloyd",
    "clustering.seeding",
    "clustering.capacity",
    "clustering.kmeans",
    "clustering.ward",
    "clustering.whitening",
    "clustering.mixture",
    "clustering.number",
    "clustering.estimator",
    "methods.method",
    "methods.representation",
    "methods.centres",
    "methods.frame",
    "methods.simgcd",
    "methods.gcd",
    "methods.kmeans",
    "methods.rankstats",
    "methods.uno",
    "methods.orca",
    "methods.debiaspl",
    "methods.registry",
    "training.network",
    "training.optim",
    "training.checkpoint",
    "training.inference",
    "training.engine",
    "config",
    "evaluation",
    "run",
    "estimating",
    "merging",
    "announcing",
    "discovery",
    "model",
    "choosing",
    "discovering",
    "pretending",
    "ranking",
    "tuning",
    "predicting",
    "sorting",
    "scoring",
    "checkup",
    "report.story",
    "report.pictures",
    "report.doubts",
    "report.headline",
    "report.gallery",
    "report.thumbnails",
    "report.atlas",
    "report.charts",
    "report.making",
    "report.verdict",
    "report.comparing",
    "report.page",
    "report.writing",
    "report.summary",
    "api",
    "bench.published",
    "bench.spread",
    "bench.dataset",
    "bench.protocol",
    "bench.cells",
    "bench.rows",
    "bench.estimates",
    "bench.latex",
    "bench.table",
    "bench.results",
    "bench.features",
    "bench.inference",
    "bench.embedding",
    "bench.figures",
    "bench.studies",
    "bench.paper",
    "bench.running",
    "estimators",
    "cli",
]


def rank(module: str) -> int:
    matches = [i for i, entry in enumerate(ORDER) if module == entry or module.startswith(entry + ".")]
    assert matches, f"{module} has no place in the order: add it to ORDER in {__file__}"
    return matches[-1]


def modules() -> list[tuple[str, ast.Module]]:
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        name = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        if name not in (
            "__init__",
            "__main__",
            "data",
            "backbone",
            "bench",
            "clustering",
            "methods",
            "training",
            "report",
        ):
            found.append((name, ast.parse(path.read_text())))
    return found


@pytest.mark.parametrize(("name", "tree"), modules(), ids=[name for name, _ in modules()])
def test_imports_flow_one_way(name: str, tree: ast.Module) -> None:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("newkind."):
            target = (node.module or "").removeprefix("newkind.")
            assert rank(target) <= rank(name), f"{name} imports {target}, which stands below it"


@pytest.mark.parametrize(("name", "tree"), modules(), ids=[name for name, _ in modules()])
def test_every_module_says_what_it_is_and_what_is_public(name: str, tree: ast.Module) -> None:
    assert ast.get_docstring(tree), f"{name} has no docstring"
    public = next(
        (ast.literal_eval(n.value) for n in tree.body if isinstance(n, ast.Assign) and n.targets[0].id == "__all__"),
        None,
    )
    assert public is not None, f"{name} has no __all__"
    assert sorted(public) == sorted(set(public))
    defined = {
        target.id
        for node in tree.body
        for target in (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if isinstance(target, ast.Name)
    }
    defined |= {n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    defined |= {alias.asname or alias.name for n in tree.body if isinstance(n, ast.ImportFrom) for alias in n.names}
    assert set(public) <= defined, f"{name}: __all__ names what is not there"


@pytest.mark.parametrize("arguments", [["-c", "import newkind.cli"], ["-m", "newkind", "--help"]])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    done = subprocess.run([sys.executable, "-X", "importtime", *arguments], capture_output=True, text=True, check=True)
    imported = {line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines()}
    assert not imported & {"torch", "numpy", "scipy", "sklearn", "timm", "PIL"}


def test_license_and_version_are_told() -> None:
    done = subprocess.run([sys.executable, "-m", "newkind", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"newkind {newkind.__version__}"
