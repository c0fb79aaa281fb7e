"""The rules of the code base: layers, public names, sizes of files and functions, light imports, plain wording."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import newkind
from newkind.config import parameter_docs

SOURCE = Path(newkind.__file__).parent
ROOT = SOURCE.parent.parent

# Data flows one way: a module imports only from its own package and from those above it.
LAYERS = [
    "errors",
    "terminal",
    "schema",
    "setting",
    "shard",
    "optimizer_config",
    "config",
    "reading",
    "effort",
    "atomic",
    "mapped",
    "paths",
    "wheels",
    "http_server",
    "progress",
    "process_failure",
    "distributed",
    "device",
    "data",
    "backbone",
    "losses",
    "clustering",
    "methods",
    "training",
    "evaluation",
    "runs",
    "pipeline",
    "report",
    "review",
    "export",
    "serving",
    "experiments",
    "decided_run",
    "discovery",
    "api",
    "fitted_as_run",
    "estimator",
    "sklearn",
    "cli",
]
MAX_FILE, MAX_FUNCTION, MEDIAN_FILE = 400, 60, 120
# Phrases of an older voice; CONTRIBUTING.md says how we write.
OLD_PHRASES = re.compile(
    r"\b(?:goes on|go on with|set aside|found out|anew|[Mm]end(?:s|ed)? (?:it|that|this)|came to|are looked for|"
    r"one (?:folder|file|row|line|column|image) an? \w+|(?:images|views|runs|epochs) an? (?:step|image|process|class))\b"
)


def modules() -> list[tuple[str, ast.Module]]:
    """Name below newkind and syntax tree of every module."""
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        name = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        found.append((name, ast.parse(path.read_text(encoding="utf-8"))))
    return found


MODULES = modules()
every_module = pytest.mark.parametrize(("name", "tree"), MODULES, ids=[name for name, _ in MODULES])


def imported(tree: ast.Module, *, at_run_time: bool = True) -> set[str]:
    """Top-level parts of newkind that a module imports, `from newkind import distributed` included."""
    skipped = {
        id(inner)
        for node in ast.walk(tree)
        if at_run_time and isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    found = set()
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.ImportFrom) and node.module == "newkind":
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("newkind."):
            found.add((node.module or "").split(".")[1])
        elif isinstance(node, ast.Import):
            found |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("newkind.")}
    return found & set(LAYERS)


@every_module
def test_imports_flow_one_way(name: str, tree: ast.Module) -> None:
    own = name.split(".")[0]
    if own in ("__init__", "__main__", "newkind", ""):
        return
    assert own in LAYERS, f"{own} has no layer: add it to LAYERS in {__file__}"
    for target in imported(tree):
        assert LAYERS.index(target) <= LAYERS.index(own), f"{name} imports {target}, which is a later layer"


def test_there_are_no_import_cycles_between_modules() -> None:
    """Modules of one package import each other one way, too."""
    graph = {}
    for name, tree in MODULES:
        top = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
        graph[name] = {
            (node.module or "").removeprefix("newkind.") for node in top if (node.module or "").startswith("newkind.")
        }
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, f"import cycle: {' -> '.join((*path, name))}"
        if name in done or name not in graph:
            return
        for target in graph[name]:
            visit(target, (*path, name))
        done.add(name)

    for name in graph:
        visit(name, ())


@every_module
def test_every_module_has_a_docstring_and_says_what_is_public(name: str, tree: ast.Module) -> None:
    assert ast.get_docstring(tree), f"{name} has no docstring"
    if not any(isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Assign | ast.ImportFrom) for node in tree.body):
        return  # a package without names of its own
    if name == "__main__":
        return
    public = next(
        (
            ast.literal_eval(n.value)
            for n in tree.body
            if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name) and n.targets[0].id == "__all__"
        ),
        None,
    )
    assert public is not None, f"{name} has no __all__"
    assert len(public) == len(set(public))


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_files_and_functions_are_short(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= MAX_FILE
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            assert length <= MAX_FUNCTION, f"{path.name}:{node.lineno} {node.name} has {length} lines"


def test_the_median_file_is_short() -> None:
    lengths = sorted(path.read_text(encoding="utf-8").count("\n") for path in SOURCE.rglob("*.py"))
    assert lengths[len(lengths) // 2] <= MEDIAN_FILE


def public_callables() -> list[tuple[str, object]]:
    """Everything that the public packages export."""
    found = {}
    for package in (
        "newkind",
        "newkind.data",
        "newkind.evaluation",
        "newkind.losses",
        "newkind.clustering",
        "newkind.sklearn",
    ):
        module = importlib.import_module(package)
        for name in module.__all__:
            value = getattr(module, name)
            if callable(value) and getattr(value, "__module__", "").startswith("newkind"):
                found[f"{value.__module__}.{name}"] = value
    return sorted(found.items())


PUBLIC = public_callables()
everything_public = pytest.mark.parametrize(("name", "value"), PUBLIC, ids=[name for name, _ in PUBLIC])


@everything_public
def test_every_public_parameter_is_documented(name: str, value: object) -> None:
    assert inspect.getdoc(value), f"{name} has no docstring"
    if is_error_or_protocol(value):
        return
    documented = parameter_docs(value) if inspect.isclass(value) else function_docs(inspect.getdoc(value) or "")
    for parameter in inspect.signature(value).parameters.values():  # type: ignore[arg-type]
        if parameter.name not in ("self", "cls"):
            assert parameter.name in documented, f"{name}: parameter {parameter.name} is not documented"


@everything_public
def test_every_public_result_is_documented(name: str, value: object) -> None:
    functions = {name: value}
    if inspect.isclass(value):
        functions = {f"{name}.{k}": v for k, v in vars(value).items() if inspect.isfunction(v) and k.isidentifier()}
    for key, function in functions.items():
        if key.split(".")[-1].startswith("_") or not inspect.isroutine(function):
            continue
        text = inspect.getdoc(function) or inspect.getdoc(getattr(value, key.split(".")[-1])) or ""
        returns_nothing = inspect.signature(function).return_annotation in (None, "None")
        assert returns_nothing or re.search(r"^(Returns|Yields)\n-{3,}$", text, re.M), f"{key} has no section Returns"


def has_example(value: object) -> bool:
    return bool(re.search(r"^Examples\n-{3,}$.*^>>> ", inspect.getdoc(value) or "", re.M | re.S))


@everything_public
def test_everything_public_has_an_example(name: str, value: object) -> None:
    """A class may have that of a base class, or be the result of a public function that has one."""
    if is_error_or_protocol(value):
        return
    shown = [value]
    if inspect.isclass(value):
        shown += value.__mro__
        shown += [f for _, f in PUBLIC if inspect.isfunction(f) and re.search(rf"\b{value.__name__}\b", returned(f))]
    assert any(map(has_example, shown)), f"{name} has no example"


def is_error_or_protocol(value: object) -> bool:
    return inspect.isclass(value) and (issubclass(value, BaseException) or getattr(value, "_is_protocol", False))


def returned(function: Callable[..., object]) -> str:
    return str(inspect.signature(function).return_annotation)


def function_docs(text: str) -> set[str]:
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-{3,}$|\Z)", text, re.S | re.M)
    names = re.findall(r"^(\*{0,2}\w[\w, *]*)(?: :|$)", section[1] if section else "", re.M)
    return {name.strip("* ") for group in names for name in group.split(",")}


def wording_files() -> list[Path]:
    return [
        *SOURCE.rglob("*.py"),
        *SOURCE.rglob("*.html"),
        *(path for path in ROOT.glob("*.md") if path.name != "CHANGELOG.md"),
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "examples").glob("*.py"),
    ]


@pytest.mark.parametrize("path", wording_files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_wording_is_plain(path: Path) -> None:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        assert not OLD_PHRASES.search(line), f"{path.name}:{number}: {line.strip()}"


@pytest.mark.parametrize("arguments", [["-c", "import newkind.cli"], ["-m", "newkind", "--help"]])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments], capture_output=True, text=True, check=True, timeout=120
    )
    names = {line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines()}
    assert not names & {"torch", "numpy", "scipy", "sklearn", "timm", "PIL"}


def test_public_names_are_listed_and_importable() -> None:
    assert set(newkind.__all__) <= set(dir(newkind))
    for name in newkind.__all__:
        assert getattr(newkind, name) is not None
    with pytest.raises(AttributeError):
        newkind.nothing  # noqa: B018


def test_the_version_is_printed() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "newkind", "--version"], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.strip() == f"newkind {newkind.__version__}"


def test_imported_packages_are_declared() -> None:
    import tomllib

    names = {
        "sklearn": "scikit-learn",
        "PIL": "pillow",
        "matplotlib": "plots",
        "tensorboard": "tensorboard",
        "onnxruntime": "onnx",
        "onnxscript": "onnx",
    }
    names |= {"openpyxl": "excel", "pyarrow": "parquet", "pillow_heif": "heic", "IPython": "notebook"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {re.split(r"[<>=\[ ]", item)[0].lower().replace("_", "-") for item in project["dependencies"]}
    declared |= set(project["optional-dependencies"])
    found = set()
    for _, tree in MODULES:
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                found.add((node.module or "").split(".")[0])
    external = found - set(sys.stdlib_module_names) - {"newkind", "__future__"}
    missing = {name for name in external if names.get(name, name).lower().replace("_", "-") not in declared}
    assert not missing


TESTS = sorted(Path(__file__).parent.rglob("*.py"))


def test_tests_mirror_the_packages() -> None:
    for path in TESTS:
        folder = path.parent.relative_to(Path(__file__).parent)
        assert (SOURCE / folder).is_dir() or folder.name == "torture", f"{path}: there is no package {folder}"


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.name)
def test_subprocesses_have_a_timeout(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("subprocess.run", "subprocess.check_output"):
            assert any(keyword.arg == "timeout" for keyword in node.keywords), f"{path.name}:{node.lineno}"
