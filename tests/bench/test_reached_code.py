from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import openset
from openset.bench.reached_code import NOT_COMPUTING, code_only, reachable, reached_code
from openset.registry import Method, methods, register

RUN_ALWAYS = ("openset.bench.execute",)


def test_comments_and_docstrings_are_not_code():
    code = "X = 1\n\ndef f(a):\n    return a + X\n"
    told = '"""A module."""\nX = 1  # one\n"""About X."""\n\ndef f(a):\n    """Adds."""\n    return a + X\n'
    bare, commented, other, minus = (
        code_only(ast.parse(text))
        for text in (code, told, code.replace("X = 1", "X = 2"), code.replace("+", "-"))
    )
    assert bare == commented and len({bare, other, minus}) == 3
    assert code_only(ast.parse("def f():\n    'g'")) != code_only(ast.parse("def f():\n    return 'g'"))


def test_a_method_reaches_its_own_code_and_not_that_of_others():
    paper, color = (reachable([f"openset.methods.{name}"], ["openset"]) for name in ("color_paper", "color"))
    assert {"openset.methods._color", "openset.learn.primal_dual", "openset.stats.selection"} <= paper.keys()
    assert not {"openset.methods.color", "openset.methods._voices", "openset.align.auto"} & paper.keys()
    assert {"openset.methods._voices", "openset.align.coral", "openset.stats.mixing"} <= color.keys()
    codes = [reached_code(method.name) for method in methods()]
    modules = {method.class_path.partition(":")[0] for method in methods()}
    assert len(set(codes)) == len(modules)


def test_what_problems_and_metrics_import_is_reached_by_every_run():
    found = reachable([*RUN_ALWAYS, "openset.bench.problems.datasets"], ["openset"])
    assert {"openset.shift.recipes", "openset.stats.metrics", "openset.features.images"} <= found.keys()
    assert not any(name.startswith(("openset.report", "openset.commands", "openset.review")) for name in found)


@pytest.mark.parametrize("name", NOT_COMPUTING)
def test_what_is_left_out_exists(name):
    import_module(name)


def test_a_method_of_another_package_counts_with_what_it_imports(tmp_path, monkeypatch):
    package = tmp_path / "my_methods"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "mine.py").write_text("from .shared import K\nfrom . import more\n\nclass Mine:\n    k = K\n")
    (package / "shared.py").write_text("K = 1\n")
    (package / "more.py").write_text("def late():\n    from my_methods import last\n")
    (package / "last.py").write_text("import numpy.linalg\n")
    monkeypatch.syspath_prepend(tmp_path)
    found = reachable(["my_methods.mine"], ["my_methods"])
    assert found.keys() == {"my_methods", *(f"my_methods.{name}" for name in ("mine", "shared", "more", "last"))}
    monkeypatch.setattr("openset.registry._METHODS", {})
    register(Method("mine", "my_methods.mine:Mine", "Mine", "me", "nothing", "nothing"))
    before = reached_code.__wrapped__("mine")
    (package / "shared.py").write_text("K = 2\n")
    import openset.bench.reached_code as module

    module._tree.cache_clear()
    module.code_of.cache_clear()
    assert reached_code.__wrapped__("mine") != before


def test_looking_imports_no_torch():
    code = "import sys; from openset.bench.reached_code import reached_code as r; r('color'); "
    code += "sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_file_of_learn_is_reached_by_some_method():
    root = Path(openset.__file__).parent
    reached: set[str] = set()
    for method in methods():
        reached |= reachable([method.class_path.partition(":")[0], *RUN_ALWAYS], ["openset"]).keys()
    files = {f"openset.learn.{path.stem}" for path in (root / "learn").glob("*.py") if path.stem != "__init__"}
    assert files <= reached
