"""Tampered runs: every field of ``result.json``, ``model.json`` and the rest dropped, of another type, or added.

The checksum of a manifest is mended, as somebody would who means it. Each command must end with 0, or with 2 and
one sentence; :func:`failures` yields what ends otherwise.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from command_line import call
from mutations import Mutation, mutations
from openset.persistence.model import _manifest_digest

ODD_VALUES = (None, True, -1, 3, 2**70, 0.5, "text", "", "../../etc/passwd", [], [1], {}, {"some": "name"})


class Failure(NamedTuple):
    command: str
    file: str
    what: str
    path: tuple[Any, ...]
    error: str


JSON_FILES = ("result.json", "model/model.json", "features.json")


def tampered(run: Path) -> Iterator[tuple[str, Mutation]]:
    """Every mutation of the JSON files of a run; the caller writes them with :func:`write`."""
    for name in (name for name in JSON_FILES if (run / name).exists()):
        content = json.loads((run / name).read_text(encoding="utf-8"))
        for mutation in mutations(_shortened(content), others=ODD_VALUES):
            yield name, mutation


def _shortened(content: Any) -> Any:
    """Long lists cut to two entries, so that few mutations stand for many; never those that must agree."""
    kept = ("classes", "top_rows", "features", "columns")
    for name in ("heads", "history", "diagnostics"):
        if isinstance(content.get(name), list) and name not in kept:
            content[name] = content[name][:2]
    return content


def write(run: Path, name: str, mutation: Mutation) -> None:
    """Write changed content in place, with its checksum mended."""
    content = mutation.content
    if name == "model/model.json" and isinstance(content, dict) and mutation.path[:1] != ("sha256",):
        content = {**content, "sha256": _manifest_digest(content)}
    (run / name).write_text(json.dumps(content), encoding="utf-8")


def failures(
    run: Path, data: Path, scratch: Path, *, seed: int = 0, most: int | None = None
) -> Iterator[Failure | None]:
    """Yield for each mutation and command None, or what went wrong; ``most`` draws so many mutations."""
    cases = list(tampered(run))
    random.Random(seed).shuffle(cases)
    for name, mutation in cases[:most]:
        copy = scratch / "tampered"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(run, copy)
        write(copy, name, mutation)
        out = scratch / "scored.csv"
        commands = [("score", copy, data, "--out", out, "--quiet")]
        if name == "result.json":
            commands += [
                ("inspect", copy, "-v"),
                ("report", copy),
                ("compare", copy, run),
                ("evaluate", copy, data),
            ]
        for command in commands:
            done = call(*command)
            passed = done.exit_code in (0, 1, 2, 3) and (
                done.exception is None or isinstance(done.exception, SystemExit)
            )
            yield (
                None
                if passed
                else Failure(command[0], name, mutation.what, mutation.path, repr(done.exception)[:200])
            )
