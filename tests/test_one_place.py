"""What is done in one place only: parsing JSON from elsewhere, printing, writing files, and loading pickled data."""

import ast
from pathlib import Path

import pytest

import newkind

SOURCE = Path(newkind.__file__).parent
PACKAGED = {"data.benchmarks", "data.splits", "experiments.paper.catalogue", "experiments.paper.published"}
"""Modules that read JSON of the package itself."""
PLACES: dict[str, set[str]] = {
    "json.load": set(),
    "json.loads": {"schema", *PACKAGED},
    "Console": set(),
    "rich.print": set(),
    "os.rename": set(),
    "os.replace": {"atomic", "pipeline.placement"},
    "os.link": {"atomic", "pipeline.placement"},
    "os.symlink": {"pipeline.placement"},
    "os.fdopen": {"atomic", "pipeline.placement"},
    "shutil.move": set(),
    "shutil.copy": set(),
    "shutil.copy2": set(),
    "shutil.copyfile": {"pipeline.placement"},
    "shutil.copyfileobj": {"atomic", "pipeline.placement"},
    "shutil.copytree": {"fitted_as_run"},
    "FileLock": {"atomic"},
    "sqlite3.connect": {"runs.decision_log", "review.thumbnails"},
    "csv.reader": {"data.records", "export.read_ecotaxa", "runs.metadata"},
    "csv.DictReader": {"runs.assignment"},
    "np.load": {"data.npy", "data.npz", "runs.recorded_array"},
    "torch.load": {"backbone.weights_file"},
    "onnxruntime.InferenceSession": {"backbone.int8_blocks", "export.onnx_model"},
    "Image.open": {"data.decoding"},
    "tarfile.open": {"data.tars"},
    "subprocess.run": {"data.matlab", "pipeline.doctor", "wheels"},
    "subprocess.Popen": set(),
    "os.system": set(),
    "urlopen": {"wheels"},
    "print": {"cli.evaluate", "cli.history", "cli.inspect"},  # JSON, in ASCII
    "np.savez": set(),
    "pickle.load": set(),
    "pickle.loads": set(),
    "eval": set(),
    "exec": set(),
}
"""Functions, and the modules that may call them."""
WRITING = {"atomic", "pipeline.placement", "backbone.token_store"}
"""Modules that open files for writing; the store of tokens appends groups of records, which its index confirms."""
TEMPORARY = {"wheels", "fitted_as_run"}
"""Modules that also write into temporary folders of their own."""


def calls() -> list[tuple[str, ast.Call]]:
    """Module below newkind and syntax tree of every call."""
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        name = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found += [(name, node) for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return found


CALLS = calls()


@pytest.mark.parametrize("function", PLACES)
def test_only_these_modules_call_it(function: str) -> None:
    callers = {name for name, call in CALLS if ast.unparse(call.func) == function}
    assert callers <= PLACES[function]


def test_files_are_opened_for_writing_in_one_place() -> None:
    callers = set()
    for name, call in CALLS:
        if ast.unparse(call.func) in ("open", "io.open") or ast.unparse(call.func).endswith(".open"):
            modes = [*call.args[:2], *(keyword.value for keyword in call.keywords if keyword.arg == "mode")]
            texts = {mode.value for mode in modes if isinstance(mode, ast.Constant) and isinstance(mode.value, str)}
            if any(set(text) <= set("rwxabt+") and set(text) & set("wxa+") for text in texts):
                callers.add(name)
    assert callers <= WRITING


def test_paths_are_not_written_directly() -> None:
    callers = {
        name
        for name, call in CALLS
        if isinstance(call.func, ast.Attribute)
        and call.func.attr in ("write_text", "write_bytes", "touch")
        and ast.unparse(call.func.value) not in ("atomic", "run", "self", "target")  # methods of Run use `atomic`
    }
    assert callers <= WRITING | TEMPORARY


def test_pickled_data_is_never_loaded() -> None:
    for name, call in CALLS:
        function, given = ast.unparse(call.func), {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
        assert given.get("allow_pickle", "False") == "False", name
        if function == "torch.load":
            assert given.get("weights_only") == "True", name
        if function == "np.load":
            assert "allow_pickle" in given, name
