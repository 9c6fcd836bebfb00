"""The code that a run can reach, and its checksum: a run is computed again only if that code changed."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

from openset._utils.hashing import sha256
from openset.registry import get_method

NOT_COMPUTING = (
    "openset._utils.progress",
    "openset._version",
    "openset.bench.paper",
    "openset.bench.provenance",
    "openset.bench.reached_code",
    "openset.bench.runs",
    "openset.bench.spec",
    "openset.errors",
    "openset.persistence",
    "openset.registry",
)
"""Modules and packages that runs import but that cannot change their numbers."""
_PROBLEMS = "openset.bench.problems"
_EXECUTE = "openset.bench.execute"


@functools.cache
def reached_code(method: str) -> str:
    """A checksum of the code that runs of a method can reach: its module, the problems, and all they import."""
    module = get_method(method).class_path.partition(":")[0]
    packages = ("openset", module.partition(".")[0])
    reached = reachable([module, _EXECUTE, *_modules_in(_PROBLEMS)], packages)
    return sha256("".join(f"{name}\0{code_of(path)}" for name, path in sorted(reached.items())))


def reachable(modules: Iterable[str], packages: Iterable[str]) -> dict[str, Path]:
    """The files of the modules and of all that they import from the packages, by name.

    Imports inside functions count. Modules that are loaded by name at run time do not: for methods that is
    wanted, because the registry names all of them.

    >>> found = reachable(["openset.methods.knn"], ["openset"])
    >>> "openset.stats.neighbours" in found, "openset.methods.color" in found, "openset.errors" in found
    (True, False, False)
    """
    tops, waiting = set(packages), list(modules)
    found: dict[str, Path] = {}
    while waiting:
        name = waiting.pop()
        if name in found or name.partition(".")[0] not in tops or _is_in(name, NOT_COMPUTING):
            continue
        path = _file_of(name)
        if path is not None:
            found[name] = path
            waiting += _imports(path, name)
    return found


def _is_in(name: str, parts: tuple[str, ...]) -> bool:
    return any(name == part or name.startswith(f"{part}.") for part in parts)


def _file_of(name: str) -> Path | None:
    """The Python file of a module; None if the name is not a module's, or the module is not Python."""
    top, *inner = name.split(".")
    root = _root(top)
    if root is None or not inner:
        return root
    place = root.parent.joinpath(*inner)
    return next((file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file()), None)


@functools.cache
def _root(top: str) -> Path | None:
    """The file of a top-level module or package."""
    try:
        spec = find_spec(top)  # imports nothing, as the name has no dot
    except ValueError:  # __main__
        return None
    origin = None if spec is None else spec.origin
    return Path(origin) if origin is not None and origin.endswith(".py") else None


def _modules_in(package: str) -> Iterator[str]:
    path = _file_of(package)
    yield package
    if path is not None:
        yield from (f"{package}.{file.stem}" for file in path.parent.glob("*.py") if file != path)


def _imports(path: Path, module: str) -> Iterator[str]:
    """The names in a module's imports; in ``from a import b``, ``a.b`` may be a module too."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            origin = ".".join([*parents, *([node.module] if node.module else [])])
            yield origin
            yield from (f"{origin}.{alias.name}" for alias in node.names)


@functools.cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


@functools.cache
def code_of(path: Path) -> str:
    """The code of a file, without comments and docstrings."""
    return code_only(_tree(path))


def code_only(tree: ast.Module) -> str:
    """A module without comments and docstrings, which change no number.

    >>> one, two = (code_only(ast.parse(text)) for text in ("x = 1  # one", "'About x.'; x = 1"))
    >>> one == two != code_only(ast.parse("x = 2"))
    True
    """
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [part for part in body if not _is_text(part)]  # type: ignore[attr-defined]
    return ast.dump(tree)


def _is_text(statement: ast.stmt) -> bool:
    """Whether the statement is a string and nothing else: a docstring, also one below a constant."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )
