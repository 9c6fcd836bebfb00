"""What a run's numbers depend on besides the run itself: the package's code, the machine, its libraries."""

from __future__ import annotations

import ast
import functools
import platform
import re
from importlib.metadata import version
from pathlib import Path

from openset._utils.hashing import sha256
from openset._version import __version__

NOT_COMPUTING = (
    "cli.py",
    "testing.py",
    "_utils/progress.py",
    "commands",
    "persistence",
    "pipeline",
    "report",
)
"""Files and folders of the package that cannot change a run's numbers."""
COMPUTING_IN_BENCH = ("bench/problems", "bench/execute.py")
"""The only files and folders of the bench that can; what is planned is part of a run's key."""


@functools.cache
def code_version() -> str:
    """The version, and a checksum of the package's code that can change a run's numbers."""
    root = Path(__file__).parents[1]
    names = sorted(path.relative_to(root).as_posix() for path in root.rglob("*.py"))
    code = [f"{name}\0{_code_only((root / name).read_text('utf-8'))}" for name in names if _computes(name)]
    return f"{__version__}+{sha256(''.join(code))[:12]}"


def _computes(name: str) -> bool:
    """Whether the code of that file can change a run's numbers.

    >>> [_computes(name) for name in ("base.py", "cli.py", "bench/tables.py", "bench/problems/datasets.py")]
    [True, False, False, True]
    """
    return _is_in(name, COMPUTING_IN_BENCH) if _is_in(name, ("bench",)) else not _is_in(name, NOT_COMPUTING)


def _is_in(name: str, parts: tuple[str, ...]) -> bool:
    return any(name == part or name.startswith(f"{part}/") for part in parts)


def _code_only(source: str) -> str:
    """A module without comments and docstrings, which change no number.

    >>> _code_only("x = 1  # one") == _code_only("'About x.'; x = 1") != _code_only("x = 2")
    True
    """
    tree = ast.parse(source)
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


@functools.cache
def environment() -> dict[str, str]:
    """Interpreter, libraries, machine and processor of this process, which may be a worker elsewhere."""
    libraries = {name: version(name) for name in ("numpy", "scipy", "scikit-learn", "torch")}
    machine = {"machine": platform.machine(), "processor": _processor()}
    return {"python": platform.python_version(), **machine, **libraries}


def _processor() -> str:
    """The kind of processor: kinds round sums differently, which becomes visible in long training."""
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8")
    except OSError:  # not Linux
        return platform.processor() or "unknown"
    facts = dict(re.findall(r"^([\w ]+?)\s*:[ \t]*(.*)$", text, re.MULTILINE))
    numbers = [facts[name] for name in ("cpu family", "model", "CPU implementer", "CPU part") if name in facts]
    kind = f" ({' '.join(numbers)})" if numbers else ""
    return f"{facts.get('model name', 'unknown')}{kind}"
