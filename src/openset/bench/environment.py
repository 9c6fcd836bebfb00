"""What a run's numbers may depend on besides its code: interpreter, libraries, machine, kind of processor."""

from __future__ import annotations

import functools
import platform
import re
from importlib.metadata import version
from pathlib import Path


@functools.cache
def environment() -> dict[str, str]:
    """Of this process, which may be a worker far away."""
    libraries = {name: version(name) for name in ("numpy", "scipy", "scikit-learn", "torch")}
    machine = {"machine": platform.machine(), "processor": _processor()}
    return {"python": platform.python_version(), **machine, **libraries}


def _processor() -> str:
    """Kinds of processors round sums in their own ways, and long training makes that visible."""
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8")
    except OSError:  # no Linux
        return platform.processor() or "unknown"
    facts = dict(re.findall(r"^([\w ]+?)\s*:[ \t]*(.*)$", text, re.MULTILINE))
    numbers = [facts[name] for name in ("cpu family", "model", "CPU implementer", "CPU part") if name in facts]
    kind = f" ({' '.join(numbers)})" if numbers else ""
    return f"{facts.get('model name', 'unknown')}{kind}"
