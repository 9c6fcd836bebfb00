"""Processes that are killed at a chosen moment: before or after the n-th step that puts files in place.

The steps are the system calls that sync, rename and remove, so that a kill is tried at each one.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

KILLER = """
import os, signal, shutil, sys
sys.path[:0] = {path!r}
moment, steps = {moment}, 0

def wrapped(function):
    def call(*arguments, **options):
        global steps
        outermost = not call.inside
        if outermost:
            step()
        call.inside = True
        try:
            return function(*arguments, **options)
        finally:
            call.inside = not outermost
            if outermost:
                step()
    call.inside = False
    return call

def step():
    global steps
    if steps == moment:
        os.kill(os.getpid(), signal.SIGKILL)
    steps += 1

def install():
    for name in ("rename", "replace", "unlink", "fsync"):
        setattr(os, name, wrapped(getattr(os, name)))
    from openset._utils import files
    files.exchange = wrapped(files.exchange) if {exchange} else lambda one, other: False
    shutil.rmtree = wrapped(shutil.rmtree)

{code}
"""


def killed_at(moment: int, code: str, *, exchange: bool = True) -> bool:
    """Run code that calls ``install()`` before it writes; True if it was killed, False if it ended before."""
    source = KILLER.format(path=sys.path, moment=moment, exchange=exchange, code=code)
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, check=False, text=True)
    if done.returncode not in (0, -9):
        raise RuntimeError(done.stderr)
    return done.returncode == -9


def kills(code: str, *, exchange: bool = True, every: int = 1) -> Iterator[int]:
    """Run code again and again, killed one step later each time, until it ends; yields after each kill."""
    moment = 0
    while killed_at(moment, code, exchange=exchange):
        yield moment
        moment += every
