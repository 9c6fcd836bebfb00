"""The house keeps its order: few rooms at the top, short files and functions, a test beside every module."""

from __future__ import annotations

import ast
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE, TESTS = ROOT / "src" / "openset", ROOT / "tests"
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path.stem not in ("__init__", "_version"))
TEST_FILES = sorted(path for path in TESTS.rglob("test_*.py"))

NO_TWIN: dict[str, str] = {}
"""Modules without a test file of their own, each with the reason."""


def twin_of(module):
    return TESTS / module.relative_to(PACKAGE).with_name(f"test_{module.name}")


def test_at_most_ten_modules_at_the_top():
    assert len(list(PACKAGE.glob("*.py"))) <= 10


@pytest.mark.parametrize("folder", ["src", "tests", "benchmarks", "docs"])
def test_no_file_is_over_500_lines(folder):
    lengths = {path: len(path.read_text("utf-8").splitlines()) for path in (ROOT / folder).rglob("*.py")}
    assert {path: length for path, length in lengths.items() if length > 500} == {}


def test_functions_are_under_60_lines_of_code():
    found = {}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef):
                text = node.body[0].end_lineno - node.body[0].lineno + 1 if ast.get_docstring(node) else 0
                found[f"{path.relative_to(PACKAGE)}:{node.name}"] = node.end_lineno - node.lineno + 1 - text
    assert {name: lines for name, lines in found.items() if lines >= 60} == {}


def test_every_module_has_a_test_file_of_its_own_or_a_reason():
    without = {str(m.relative_to(PACKAGE)) for m in MODULES if not twin_of(m).exists()}
    assert without == NO_TWIN.keys()


def test_every_test_file_belongs_to_a_module_or_says_why_not():
    twins = {twin_of(module) for module in MODULES}
    for path in TEST_FILES:
        if path not in twins:
            assert ast.get_docstring(ast.parse(path.read_text("utf-8"))), f"{path} has no module and no reason"


def test_nothing_but_learn_and_what_trains_imports_torch_when_it_is_imported():
    """Torch is imported at the top of modules that are only loaded for it, and inside no function of those."""
    for path in (*PACKAGE.glob("learn/*.py"), *PACKAGE.glob("methods/*.py")):
        inside = [
            node
            for function in ast.walk(ast.parse(path.read_text("utf-8")))
            if isinstance(function, ast.FunctionDef)
            for node in ast.walk(function)
            if isinstance(node, (ast.Import, ast.ImportFrom)) and imports_torch(node)
        ]
        assert inside == [], f"{path.name} imports torch inside a function"


def imports_torch(node):
    names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
    return any(name.split(".")[0] == "torch" or name.startswith("openset.learn") for name in names)


def test_what_benchmarks_import_is_there():
    """They are not run by tests, and evidence that nobody can write again is none."""
    missing = []
    for path in sorted((ROOT / "benchmarks").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("openset"):
                module = import_module(node.module)
                missing += [
                    f"{path.name}: {node.module}.{name.name}"
                    for name in node.names
                    if not hasattr(module, name.name)
                    and not (hasattr(module, "__path__") and find_spec(f"{node.module}.{name.name}"))
                ]
    assert missing == []
