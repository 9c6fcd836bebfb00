"""Runs the examples of a page: Python blocks as one program, console blocks through the commands, in order.

A TOML block is a file; its first line has the name.
"""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from types import ModuleType

from typer.testing import CliRunner

from openset.cli import app

ROOT = Path(__file__).parents[1]
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)


def blocks(page):
    """Return the kind and the text of every fenced block."""
    return _BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))


def run_page(page, names=None):
    """Run a page in the current folder, with ``names`` defined at the start; return what its program defined."""
    module = ModuleType("page")  # a module, so that its classes can be pickled
    vars(module).update(names or {})
    sys.modules["page"] = module
    try:
        for number, (kind, text) in enumerate(blocks(page)):
            if kind == "python":
                exec(compile(text, f"{page}, block {number}", "exec"), vars(module))
            elif kind == "console":
                for line in text.replace("\\\n", " ").splitlines():
                    run_line(line, page)
            elif kind == "toml":
                name, _ = text.removeprefix("# ").split("\n", 1)
                Path(name).write_text(text, encoding="utf-8")
    finally:
        del sys.modules["page"]
    return vars(module)


def run_line(line, page):
    """Run one line of a console block: an openset command after a prompt."""
    assert line.startswith("$ openset "), f"{page}: a console block has commands only, not {line!r}"
    done = CliRunner().invoke(app, shlex.split(line.removeprefix("$ openset ")), env={"COLUMNS": "80"})
    assert done.exit_code == 0, f"{page}: {line}\n{done.output}"
