"""Rules of the source tree: short files, light start-up, docstrings; `make check` has imports."""

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "omnigraph"
MODULES = sorted(SOURCE.rglob("*.py"))
MAX_LINES = 900
COLUMN_MAPPING = {
    "physical_columns",
    "PROPERTY_ID",
    b"omnigraph.stable_property_id",
    "_stored_name",
    "_stored_list",
    "_stored_filter",
}
"""What a module needs in order to find the stored column of a property."""
HEAVY = ("hypothesis", "pyarrow", "rich")


def test_every_module_is_documented_short_and_imports_its_own_package_at_the_top():
    problems = [problem for path in MODULES for problem in find_problems(path)]
    assert problems == []


def test_every_class_name_has_one_meaning():
    names = Counter(
        node.name
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    )
    assert len(names) > 500
    assert [name for name, count in names.items() if count > 1] == []


def test_only_the_dataset_view_maps_properties_to_stored_columns():
    users = [
        path.relative_to(SOURCE).as_posix()
        for path in MODULES
        if COLUMN_MAPPING & set(names_in(ast.parse(path.read_text(encoding="utf-8"))))
    ]
    mappers = [u for u in users if not u.startswith("dataset_view/") and u != "storage/layout.py"]
    assert mappers == []
    assert "dataset_view/version_reader.py" in users


@pytest.mark.parametrize(
    "text",
    [
        "from omnigraph.storage.layout import physical_columns as columns",
        "from omnigraph.storage import layout\nlayout.physical_columns(schema)",
        "field.metadata[PROPERTY_ID]",
        "view._stored_name(name)",
        """field.metadata[b"omnigraph.stable_property_id"]""",
    ],
)
def test_a_mapping_of_stored_columns_is_found(text):
    assert COLUMN_MAPPING & set(names_in(ast.parse(text)))


@pytest.mark.parametrize("module", ["omnigraph", "omnigraph.cli.app"])
def test_import_leaves_heavy_libraries_alone(module):
    program = f"import sys, {module}; print(*sorted(set({HEAVY}) & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == []


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n    import omnigraph.lang",
        "class C:\n    async def f(self):\n        from omnigraph import lang",
        "if TYPE_CHECKING:\n    from omnigraph.lang import tokens",
        "if typing.TYPE_CHECKING:\n    from . import tokens",
    ],
)
def test_hidden_imports_are_found(text):
    assert len(list(hidden_imports(ast.parse(text)))) == 1


def test_open_and_foreign_imports_are_not_hidden():
    text = "import omnigraph.lang\ndef f():\n    import json\nif TYPE_CHECKING:\n    import omni"
    assert list(hidden_imports(ast.parse(text))) == []


def find_problems(path: Path) -> Iterator[str]:
    """Yield each rule of the source tree that a module breaks."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    name = path.relative_to(SOURCE).as_posix()
    if not ast.get_docstring(tree):
        yield f"{name} has no docstring"
    if len(text.splitlines()) > MAX_LINES:
        yield f"{name} has more than {MAX_LINES} lines"
    for node in hidden_imports(tree):
        yield f"{name}:{node.lineno} imports omnigraph inside a function or under TYPE_CHECKING"


def hidden_imports(tree: ast.Module) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield first-party imports inside a function or under ``if TYPE_CHECKING``, each once."""
    seen = set()
    for place in filter(hides_imports, ast.walk(tree)):
        for node in ast.walk(place):
            if is_first_party_import(node) and node not in seen:
                seen.add(node)
                yield node


def hides_imports(node: ast.AST) -> bool:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING")):
            return True
    return False


def is_first_party_import(node: ast.AST) -> bool:
    match node:
        case ast.Import(names=names):
            return any(name.name.split(".")[0] == "omnigraph" for name in names)
        case ast.ImportFrom(module=module, level=level):
            return level > 0 or (module or "").split(".")[0] == "omnigraph"
    return False


def names_in(tree: ast.Module) -> Iterator[str | bytes]:
    """Yield the names, attributes, imported names and byte strings of a module."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
                yield name
            case ast.Constant(value=bytes(value)):
                yield value
