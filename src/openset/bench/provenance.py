"""What a run's numbers depend on besides the run itself: the package's code, the machine, its libraries."""

from __future__ import annotations

import ctypes
import functools
import platform
import re
from importlib.metadata import version
from pathlib import Path

from openset._utils.hashing import sha256
from openset._version import __version__
from openset.bench.reached_code import code_of


@functools.cache
def code_version() -> str:
    """The version, and a checksum of the package's code: for people, to tell when a run was made."""
    root = Path(__file__).parents[1]
    paths = {path.relative_to(root).as_posix(): path for path in root.rglob("*.py")}
    code = [f"{name}\0{code_of(path)}" for name, path in sorted(paths.items())]
    return f"{__version__}+{sha256(''.join(code))[:12]}"


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
    told = ", MKL as on Intel" if _mkl_takes_it_for_intel(facts.get("vendor_id", "")) else ""
    return f"{facts.get('model name', 'unknown')}{kind}{told}"


def _mkl_takes_it_for_intel(vendor: str) -> bool:
    """Whether a preloaded library gives MKL's kernels for Intel, which round differently, to another processor.

    ``benchmarks/mkl_on_amd.py`` makes such a library and tells what it gains.
    """
    answer = getattr(ctypes.CDLL(None), "mkl_serv_intel_cpu_true", None)
    return vendor != "GenuineIntel" and answer is not None and bool(answer())
